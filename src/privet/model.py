"""A published model with the card that says what it cost, and the file that holds both.

The file is JSON with a format name and a version (docs/formats.md). Reading it parses text and
checks it, nothing more: no code, no classes, no paths are taken from it. Files of older versions
are read as well; what they do not say is taken as not known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.errors import ModelFileError, SchemaError
from privet.outputs import OutputFile
from privet.privacy import (
    ADJACENCY,
    REPLACE_ONE_FACTOR,
    SEEDED,
    Budget,
    Cost,
    Entry,
    Ledger,
    as_float,
    read_entry,
)
from privet.schema import Schema
from privet.tree import Tree

#: A card's accountant where answers decided between the two.
EITHER = "pure or zCDP"
FORMAT = "privet-model"
VERSION = 2
#: Larger files are refused before they are parsed, which takes up to twenty times as much memory. A
#: leaf takes about 60 bytes, so that millions of them fit.
MAX_BYTES = 1 << 28
#: Cards with more entries, or more notes or warnings, are refused: no fit asks so much.
MAX_ENTRIES, MAX_TEXTS = 100_000, 1_000


@dataclass(frozen=True)
class PrivacyCard(Mapping[str, Any]):
    """What a model cost, in machine-readable form. Also a mapping; :meth:`to_dict` is plain data.

    Attributes
    ----------
    epsilon, delta : float
        What was spent; infinity if something was released that no budget covers.
    requested_epsilon, requested_delta : float
        What was asked for.
    rho : float
        What was spent in zCDP.
    adjacency : str
        Which tables are neighbours.
    replace_one_epsilon : float
        The epsilon (at the same delta) if neighbours differ by a replaced record instead.
    accountant : str
        ``"pure"``, ``"zCDP"``, or ``"pure or zCDP"`` if answers decided in which of the two the
        budget was spent (docs/proofs/ledger.md).
    private : bool
        False if something outside the accounting undoes the guarantee; ``warnings`` says what.
    warnings : tuple of str
        The reasons.
    notes : tuple of str
        Rules that are part of the mechanism, such as clipping, and what a guarantee rests on
        beyond the noise, such as honest parties.
    rows_declared : bool
        Whether the number of rows was declared to the learner as public. False if not, and if it is
        not known, as in model files of version 1.
    seeded : bool
        Whether a ``random_state`` was given to the fit, so that all its noise is one stream.
    protocol : str or None
        How answers of several parties were put together; None if one table was asked.
    entries : tuple of Entry
        The ledger's entries: what, where, how, how much.
    """

    epsilon: float
    delta: float
    requested_epsilon: float
    requested_delta: float
    rho: float
    adjacency: str
    replace_one_epsilon: float
    accountant: str
    private: bool
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    rows_declared: bool
    seeded: bool
    protocol: str | None
    entries: tuple[Entry, ...]

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        leaks: tuple[str, ...],
        *,
        rows_declared: bool,
        seeded: bool = False,
        protocol: str | None = None,
        covered: bool = True,
        notes: tuple[str, ...] = (),
    ) -> PrivacyCard:
        """Write the card of a finished fit; epsilon is infinite if something was not covered."""
        budget, total = ledger.budget, ledger.total if covered else _NOT_COVERED
        return cls(
            epsilon=budget.as_epsilon(total),
            delta=budget.delta or 0.0,
            requested_epsilon=_requested(budget),
            requested_delta=budget.delta or 0.0,
            rho=as_float(total.rho),
            adjacency=ADJACENCY,
            replace_one_epsilon=budget.as_epsilon(total.of_group(REPLACE_ONE_FACTOR)),
            accountant=EITHER if budget.either else budget.accountant,
            private=not leaks,
            warnings=leaks,
            notes=(*NOTES, *notes),
            rows_declared=rows_declared,
            seeded=seeded,
            protocol=protocol,
            entries=ledger.entries,
        )

    @property
    def unit(self) -> str:
        """In which amounts the entries add up to the total: ``"epsilon"`` or ``"rho"``."""
        pure = self.accountant == "pure" or (
            self.accountant == EITHER and all(math.isfinite(e.epsilon) for e in self.entries)
        )
        return "epsilon" if pure else "rho"

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain data. Infinities become the text ``"inf"``."""
        return {name: _to_json(getattr(self, name)) for name in self}

    @classmethod
    def from_dict(cls, plain: Any, version: int = VERSION) -> PrivacyCard:
        """Read a card of a version of the format, checking every field."""
        names = set(cls.__dataclass_fields__)
        if version == 1:
            names -= _NOT_IN_VERSION_1
        if not isinstance(plain, dict) or set(plain) != names:
            raise ModelFileError("the file has no complete privacy card")
        held: dict[str, Any] = {name: value for name, value in plain.items() if name != "entries"}
        if version == 1:
            # How many rows there were may have been declared: the card does not say.
            held |= {"rows_declared": False, "protocol": None}
            reasons = _read_texts(plain["warnings"])
            held["seeded"] = any(reason.startswith(SEEDED) for reason in reasons)
        fields = {
            name: _CARD_READERS[str(cls.__dataclass_fields__[name].type)](value)
            for name, value in held.items()
        }
        return cls(**fields, entries=_read_entries(plain["entries"], version))

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dataclass_fields__)

    def __len__(self) -> int:
        return len(self.__dataclass_fields__)


#: What cards of version 1 do not say.
_NOT_IN_VERSION_1 = frozenset({"rows_declared", "seeded", "protocol"})

#: The cost of what no budget covers.
_NOT_COVERED = Cost(math.inf, math.inf)

#: Rules that change what the learner sees; they look at one record at a time (schema.py).
NOTES = (
    "numbers outside the schema's bounds, targets too, were clipped to them, which is part of the "
    "mechanism; missing numbers and unknown or "
    "missing categories went to a public extra bin; records whose class is missing or not in the "
    "schema, or whose number as the target is missing, were left out; how many is not reported",
)


#: The name under which a model file holds its predictor.
_KEYS: dict[type[Tree] | type[Ensemble], str] = {Tree: "tree", Ensemble: "ensemble"}


@dataclass(frozen=True)
class Model:
    """A fitted model as it is published: what predicts, its card, and which learner made it.

    Attributes
    ----------
    predictor : Tree or Ensemble
    privacy : PrivacyCard
    learner : str

    Examples
    --------
    ``privet.load("model.json").predict(table)`` needs neither the learner nor its data.
    """

    predictor: Tree | Ensemble
    privacy: PrivacyCard
    learner: str

    @property
    def schema(self) -> Schema:
        """The schema that the model was learnt with."""
        return self.predictor.schema

    @property
    def classes(self) -> NDArray[Any]:
        """The classes, in the order of the columns of :meth:`predict_proba`."""
        return class_array(self.schema)

    def predict_proba(self, table: Any) -> NDArray[np.float64]:
        """Return class probabilities, one column per class."""
        if self.schema.classes is None:
            raise SchemaError("a model of numbers has no class probabilities; use predict")
        return self.predictor.predict_value(table)

    def predict(self, table: Any) -> NDArray[Any]:
        """Return the most probable class of every row, or the predicted number."""
        values = self.predictor.predict_value(table)
        if self.schema.classes is None:
            return np.asarray(values[:, 0])
        return np.asarray(self.classes[np.argmax(values, axis=1)])

    def save(self, path: str | Path | OutputFile) -> None:
        """Write the model file. An existing file is replaced only when the new one is complete.

        Parameters
        ----------
        path : path or OutputFile
            Where to. An :class:`~privet.outputs.OutputFile` was opened before the fit, so that
            most of what can go wrong is known before anything is spent.

        Raises
        ------
        OutputError
            If the file cannot be written, with the reason.
        """
        text = self.to_json()
        if isinstance(path, OutputFile):
            path.write(text)
            return
        with OutputFile(path) as output:
            output.write(text)

    def to_json(self) -> str:
        """Return the text of the model file."""
        return json.dumps(self.to_dict(), allow_nan=False, separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data: what the file holds."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "learner": self.learner,
            "privacy": self.privacy.to_dict(),
            "schema": self.schema.to_dict(),
            _KEYS[type(self.predictor)]: self.predictor.to_dict(),
        }

    @classmethod
    def from_dict(cls, plain: Any) -> Model:
        """Build a model from what :meth:`to_dict` returns, checking everything."""
        if not isinstance(plain, dict) or plain.get("format") != FORMAT:
            raise ModelFileError("this is not a Privet model file")
        version = plain.get("version")
        if type(version) is not int:
            raise ModelFileError("the file does not say which version of the format it has")
        if version > VERSION:
            raise ModelFileError(
                f"this model file was written by a newer Privet: its format has version "
                f"{version!s:.20}, and this Privet reads versions 1 to {VERSION}; upgrade Privet"
            )
        if version < 1:
            raise ModelFileError("the file does not say which version of the format it has")
        if set(plain) - {"format", "version", "learner", "privacy", "schema", *_KEYS.values()}:
            raise ModelFileError("the file has fields that this version does not know")
        kinds = [kind for kind, key in _KEYS.items() if key in plain]
        if len(kinds) != 1:
            raise ModelFileError("the file needs either a tree or an ensemble")
        if not isinstance(plain.get("learner"), str):
            raise ModelFileError("the file does not say which learner made the model")
        try:
            schema = Schema.from_dict(plain.get("schema"))
        except SchemaError as error:
            raise ModelFileError(f"the file's schema is wrong: {error}") from error
        except OverflowError as error:
            raise ModelFileError("the file's schema has a number that is too large") from error
        card = PrivacyCard.from_dict(plain.get("privacy"), version)
        if card.private and (
            card.warnings
            or card.seeded
            or schema.drafted
            or (math.isinf(card.epsilon) and (card.accountant == "pure" or math.isinf(card.rho)))
        ):
            raise ModelFileError(
                "the privacy card contradicts itself: it says that the model is private, and also "
                "why it is not"
            )
        return cls(
            predictor=kinds[0].from_dict(plain[_KEYS[kinds[0]]], schema),
            privacy=card,
            learner=plain["learner"],
        )


def load(path: str | Path) -> Model:
    """Read a model file. Nothing in it is executed; whatever is wrong gets a clear error."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
        if len(raw) > MAX_BYTES:
            raise ModelFileError(f"{path} is too large to be a model file")
        plain = json.loads(
            raw.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_each_key_once
        )
    except ModelFileError:
        raise
    except OSError as error:
        raise ModelFileError(f"cannot read the model file {path}") from error
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ModelFileError(f"{path} is not a Privet model file: it is not JSON") from error
    except ValueError as error:  # a number with thousands of digits
        raise ModelFileError(f"{path} is not a Privet model file") from error
    del raw
    return Model.from_dict(plain)


def class_array(schema: Schema) -> NDArray[Any]:
    """Return the classes as an array of their natural type."""
    assert schema.classes is not None
    kinds = {type(value) for value in schema.classes}
    if kinds <= {int, float} or len(kinds) == 1:
        return np.array(schema.classes)
    return np.array(schema.classes, dtype=object)


def _requested(budget: Budget) -> float:
    if budget.epsilon is not None:
        return float(budget.epsilon)
    return float("inf")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # another reader might take the other one
        raise ModelFileError("a model file has no key twice")
    return found


def _refuse_constant(_: str) -> float:
    raise ModelFileError("a model file holds no NaN or infinity")


def _to_json(value: Any) -> Any:
    if isinstance(value, Entry):
        return value.to_dict()
    if isinstance(value, float) and value == float("inf"):
        return "inf"
    if isinstance(value, tuple | list):
        return [_to_json(item) for item in value]
    return value


def _read_number(value: Any) -> float:
    if value == "inf":
        return float("inf")
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise ModelFileError("the privacy card has a number that is none")
    try:
        return float(value)
    except OverflowError:
        raise ModelFileError("the privacy card has a number that is too large") from None


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelFileError("the privacy card has a text that is none")
    return value


def _read_text_or_none(value: Any) -> str | None:
    return None if value is None else _read_text(value)


def _read_truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ModelFileError("the privacy card has a yes or no that is neither")
    return value


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_TEXTS:
        raise ModelFileError("the privacy card has a list that is none, or too long")
    return tuple(_read_text(item) for item in value)


def _read_entries(value: Any, version: int) -> tuple[Entry, ...]:
    if not isinstance(value, list) or len(value) > MAX_ENTRIES:
        raise ModelFileError("the privacy card's ledger is damaged")
    try:
        return tuple(read_entry(item, version) for item in value)
    except ValueError:
        raise ModelFileError("the privacy card's ledger is damaged") from None


_CARD_READERS: dict[str, Callable[[Any], Any]] = {
    "float": _read_number,
    "str": _read_text,
    "str | None": _read_text_or_none,
    "bool": _read_truth,
    "tuple[str, ...]": _read_texts,
}
