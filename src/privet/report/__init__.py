"""A report about a model, for people who answer for it: one page, and the same in other forms.

Made from the model file and, if given, the table's ledger file and results of audits. All of it is
public, or was released privately, so writing a report costs nothing. Results that are for the
owner's eyes only make the page one, too, and it says so at its top.

* :func:`to_html`: one self-contained page.
* :func:`to_registry`: an entry of the registry of deployments of differential privacy, in YAML.
* :func:`to_model_card`: a model card in Markdown.
"""

from __future__ import annotations

from privet.report._facts import Facts, State
from privet.report._model_card import to_model_card
from privet.report._page import to_html
from privet.report._registry import Release, read_release, to_registry
from privet.report.attachments import Attachment, read_attachment

__all__ = [
    "Attachment",
    "Facts",
    "Release",
    "State",
    "read_attachment",
    "read_release",
    "to_html",
    "to_model_card",
    "to_registry",
]
