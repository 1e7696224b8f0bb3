"""A model in other forms: for people to look at, and for other systems to run.

Every function takes a :class:`~privet.tree.Tree` or an :class:`~privet.ensemble.Ensemble` and
returns text (ONNX: bytes). Both hold released numbers only, so exporting them costs nothing. Time
and memory grow in proportion to the model; what is too large or too deep for a form gets an
:class:`~privet.errors.ExportError`.

* :func:`to_text`, :func:`to_dot`, :func:`to_svg` draw it; leaves that say the same become one. Of
  an additive ensemble they draw what each feature adds.
* :func:`to_sql`, :func:`to_python` write it as code that predicts exactly what the model predicts;
  :func:`to_onnx` as a model for other systems, which does, too.
"""

from __future__ import annotations

from privet.export.dot import to_dot
from privet.export.onnx import to_onnx
from privet.export.python import to_python
from privet.export.sql import to_sql
from privet.export.svg import to_svg
from privet.export.text import to_text

__all__ = ["to_dot", "to_onnx", "to_python", "to_sql", "to_svg", "to_text"]
