"""A published model with the card that says what it cost, and the file that holds both.

The file is JSON with a format name and a version (docs/formats.md). Reading it parses text and
checks it, nothing more: no code, no classes, no paths are taken from it. Files of older versions
are read as well; what they do not say is taken as not known.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privet.ensemble import Ensemble
from privet.errors import ModelFileError, SchemaError
from privet.evaluation import Evaluation
from privet.outputs import OutputFile
from privet.privacy import (
    ADJACENCY,
    NOISE_WIDTH,
    PERSONS,
    REPLACE_ONE_FACTOR,
    SEEDED,
    Budget,
    Cost,
    DiscoveryNoise,
    Entry,
    Ledger,
    LedgerStore,
    NoisyCount,
    Place,
    QuestionKind,
    added,
    as_float,
    at_least,
    caution,
    discovery_budget,
    doubts_of,
    read_entry,
    say_counts,
)
from privet.record import Record
from privet.schema import MAX_BINS, Discovered, Schema
from privet.tree import Tree
from privet.visible import visible

#: A card's accountant where answers decided between the two.
EITHER = "pure or zCDP"
#: A card's accountant where the fit's epsilon and delta and those of its schema were added up.
ADDED = "(epsilon, delta)"
FORMAT = "privet-model"
#: The newest version. A model without a record is written as version 3, and one that has no test
#: score either as version 2.
VERSION = 4
#: Larger files are refused before they are parsed, which takes up to twenty times as much memory. A
#: leaf takes about 60 bytes, so that millions of them fit.
MAX_BYTES = 1 << 28
#: Cards with more entries, or more notes or warnings, are refused: no fit asks so much.
MAX_ENTRIES, MAX_TEXTS = 100_000, 1_000


@dataclass(frozen=True, repr=False)
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
        budget was spent (docs/proofs/ledger.md); ``"(epsilon, delta)"`` if what the schema cost was
        added in these (docs/proofs/discovery.md).
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
    counts : tuple of NoisyCount
        The released numbers of all records and of those of each class, as far as there are any.
    declared_rows : int or None
        The number of rows that was declared as public, if it was and is known.
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
    counts: tuple[NoisyCount, ...] = ()
    declared_rows: int | None = None

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
        unit: str | None = None,
        discovered: Discovered | None = None,
        counts: tuple[NoisyCount, ...] = (),
        declared_rows: int | None = None,
    ) -> PrivacyCard:
        """Write the card of a finished fit; epsilon is infinite if something was not covered.

        What the schema cost, if it was discovered, is added.
        """
        budget, total = ledger.budget, ledger.total if covered else _NOT_COVERED
        card = cls(
            epsilon=budget.as_epsilon(total),
            delta=as_float((budget.delta or 0) + total.delta),
            requested_epsilon=_requested(budget),
            requested_delta=as_float((budget.delta or 0) + budget.threshold_delta),
            rho=as_float(total.rho),
            adjacency=ADJACENCY if unit is None else f"{PERSONS} {unit}",
            replace_one_epsilon=budget.as_epsilon(total.of_group(REPLACE_ONE_FACTOR)),
            accountant=EITHER if budget.either else budget.accountant,
            private=not leaks,
            warnings=leaks,
            notes=(*NOTES, *(() if unit is None else (PERSON_NOTE,)), *notes),
            rows_declared=rows_declared,
            seeded=seeded,
            protocol=protocol,
            entries=ledger.entries,
            counts=counts,
            declared_rows=None if declared_rows is None else int(declared_rows),
        )
        return card if discovered is None else card._with_schema(discovered)

    def _with_schema(self, paid: Discovered) -> PrivacyCard:
        """Return the card with what the schema cost: epsilons, deltas and rhos add up."""
        # Older versions paid what the doubles hold, and an epsilon in steps of 2^-30.
        older = (Fraction(paid.epsilon) * 2**30).denominator == 1
        epsilon = at_least(paid.epsilon) if older else paid.epsilon
        budget = discovery_budget(
            epsilon, at_least(paid.delta), gaussian=paid.noise == "gaussian", lists=paid.lists
        )
        asked = DiscoveryNoise(budget, paid.columns, paid.lists, paid.parts).questions
        paid_for = [
            Entry(question, Place(), 1, mechanism.facts, mechanism.cost)
            for question, mechanism in asked
        ]
        cost = sum((entry.cost for entry in paid_for[1:]), paid_for[0].cost)
        # A delta of thresholds stays what it is if a record is replaced.
        noise = replace(cost, delta=Fraction(0))
        pure = self.accountant == "pure" and not paid.delta
        return replace(
            self,
            epsilon=added(self.epsilon, paid.epsilon),
            delta=added(self.delta, paid.delta),
            requested_epsilon=added(self.requested_epsilon, paid.epsilon),
            requested_delta=added(self.requested_delta, paid.delta),
            rho=added(self.rho, as_float(cost.rho)),
            replace_one_epsilon=added(
                self.replace_one_epsilon, budget.as_epsilon(noise.of_group(REPLACE_ONE_FACTOR))
            ),
            accountant="pure" if pure else ADDED,
            notes=(*self.notes, _of_schema(paid)),
            entries=(*paid_for, *self.entries),
        )

    @property
    def of_persons(self) -> bool:
        """Whether all records of a person are protected together, not one record."""
        return self.adjacency.startswith(PERSONS)

    def count_words(self, classes: Sequence[Any] | None = None) -> list[str]:
        """Say which numbers of records were released; ``classes`` are what to call them."""
        whom = "persons" if self.of_persons else "records"
        return say_counts(self.counts, classes, whom)

    def doubts(self, classes: Sequence[Any] | None = None) -> list[str]:
        """Say what does not undo the guarantee, and yet should stop a release.

        That a model may be made of no records, or of far fewer than were declared, by released
        numbers alone, or that none were released; and that an epsilon protects nobody.
        """
        kinds = (QuestionKind.ROW_COUNT, QuestionKind.CLASS_COUNTS)
        bought = any(entry.question.kind in kinds for entry in self.entries)
        told = doubts_of(self.counts, self.declared_rows, classes, bought=bought)
        high = caution(self.epsilon)
        return told if high is None else [*told, high]

    @property
    def unit(self) -> str:
        """In which amounts the entries add up to the total: ``"epsilon"`` or ``"rho"``."""
        pure = self.accountant == "pure" or (
            self.accountant in (EITHER, ADDED)
            and all(math.isfinite(e.epsilon) for e in self.entries)
        )
        return "epsilon" if pure else "rho"

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain data. Infinities become the text ``"inf"``."""
        return {
            name: _to_json(getattr(self, name))
            for name in self
            if name not in _OPTIONAL or getattr(self, name) not in ((), None)
        }

    @classmethod
    def from_dict(cls, plain: Any, version: int = VERSION) -> PrivacyCard:
        """Read a card of a version of the format, checking every field."""
        names = set(cls.__dataclass_fields__)
        if version == 1:
            names -= _NOT_IN_VERSION_1
        if not isinstance(plain, dict) or set(plain) | _OPTIONAL != names:
            raise ModelFileError("the file has no complete privacy card")
        held: dict[str, Any] = {
            name: value for name, value in plain.items() if name not in {"entries", *_OPTIONAL}
        }
        if version == 1:
            # How many rows there were may have been declared: the card does not say.
            held |= {"rows_declared": False, "protocol": None}
            reasons = _read_texts(plain["warnings"])
            held["seeded"] = any(reason.startswith(SEEDED) for reason in reasons)
        fields = {
            name: _CARD_READERS[str(cls.__dataclass_fields__[name].type)](value)
            for name, value in held.items()
        }
        fields |= {name: _OPTIONAL_READERS[name](plain[name]) for name in _OPTIONAL & set(plain)}
        return cls(**fields, entries=_read_entries(plain["entries"], version))

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        said = "private" if self.private else "NOT PRIVATE"
        return (
            f"<PrivacyCard: {said}, epsilon={self.epsilon:.6g}{delta}, {len(self.entries)} entries>"
        )

    def _repr_html_(self) -> str:
        from privet.pictures.html import card_html

        return card_html(self)

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
#: What cards hold only if there is something to say.
_OPTIONAL = frozenset({"counts", "declared_rows"})

#: The cost of what no budget covers.
_NOT_COVERED = Cost(math.inf, math.inf)

#: Rules that change what the learner sees; they look at one record at a time (schema.py).
NOTES = (
    "numbers outside the schema's bounds, targets too, were clipped to them, which is part of the "
    "mechanism; missing numbers and unknown or "
    "missing categories went to a public extra bin; records whose class is missing or not in the "
    "schema, or whose number as the target is missing, were left out; how many is not reported",
)

#: What a model of persons is about.
PERSON_NOTE = (
    "the model describes persons, each of whom counts once, however many records there are of one; "
    "they share what the person counts, and counts are of persons; who a person is was told apart "
    "by the exact text of the column, and a record without any counts as a person of its own"
)


def _of_schema(paid: Discovered) -> str:
    delta = f" and delta {paid.delta:g}" if paid.delta else ""
    return (
        f"the schema was discovered in the table for epsilon {paid.epsilon:g}{delta}, which is "
        "part of the cost; it is paid once, however many models are fitted with it"
    )


#: Which questions the released numbers of a node answer.
_RELEASED = {"class_counts": QuestionKind.CLASS_COUNTS, "count": QuestionKind.ROW_COUNT}
#: The name under which a model file holds its predictor.
_KEYS: dict[type[Tree] | type[Ensemble], str] = {Tree: "tree", Ensemble: "ensemble"}


@dataclass(frozen=True, repr=False)
class Model:
    """A fitted model as it is published: what predicts, its card, and which learner made it.

    Attributes
    ----------
    predictor : Tree or Ensemble
    privacy : PrivacyCard
    learner : str
    evaluation : Evaluation or None
        How well it predicts records that were set aside for that.
    record : Record or None
        How it came about: when, by which versions, with which settings.

    Examples
    --------
    ``privet.load("model.json").predict(table)`` needs neither the learner nor its data.
    """

    predictor: Tree | Ensemble
    privacy: PrivacyCard
    learner: str
    evaluation: Evaluation | None = None
    record: Record | None = None

    @property
    def schema(self) -> Schema:
        """The schema that the model was learnt with."""
        return self.predictor.schema

    @property
    def noise(self) -> dict[str, float]:
        """What the released numbers of a node may be off by: three standard deviations, by name.

        Of ``class_counts`` and ``count``, as far as the card's mechanisms say it; the largest, if
        levels of the tree were asked at different costs. What was asked of the whole table, before
        a tree was learnt, is not meant if no root holds it. Whatever is no more than that may be
        noise and nothing else. Empty for a model of several parties: the card has the noise of each
        one's answers, and released numbers are sums of these.
        """
        found: dict[str, float] = {}
        if self.privacy.protocol is not None:
            return found
        trees = (self.predictor,) if isinstance(self.predictor, Tree) else self.predictor.trees
        for name, kind in _RELEASED.items():
            rooted = any(name in tree.nodes[0].released for tree in trees)
            asked = [e for e in self.privacy.entries if e.question.kind is kind]
            meant = [e for e in asked if rooted or e.place.level != 0]
            learnt = [e.variance for e in meant if e.place.portion != "test"]
            known = [variance for variance in learnt if variance is not None]
            if known and len(known) == len(learnt):
                found[name] = NOISE_WIDTH * math.sqrt(max(known)) / self.schema.unit_parts
        return found

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

    def importances(self) -> dict[str, float]:
        """Return how much each feature matters to the model, from what is published alone.

        See :func:`privet.pictures.importances` for what the numbers mean.
        """
        from privet.pictures import importances

        return importances(self.predictor)

    def plot(
        self, kind: str | None = None, *, features: Sequence[str] | None = None, ax: Any = None
    ) -> Any:
        """Draw the model with matplotlib: see :func:`privet.pictures.plot`."""
        from privet.pictures import plot

        return plot(self, kind, features=features, ax=ax)

    def __repr__(self) -> str:
        delta = f", delta={self.privacy.delta:g}" if self.privacy.delta else ""
        said = "private" if self.privacy.private else "NOT PRIVATE"
        return (
            f"<Model: {visible(self.learner, 40)} for {visible(self.schema.target, 40)}, "
            f"{self.predictor.size_words}, epsilon={self.privacy.epsilon:.6g}{delta}, {said}>"
        )

    def _repr_html_(self) -> str:
        from privet.pictures.html import model_html

        return model_html(self)

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

    def report(
        self,
        path: str | Path | None = None,
        *,
        ledger: LedgerStore | str | Path | None = None,
        attach: Sequence[str | Path] = (),
    ) -> str:
        """Return a page about the model for people who answer for it: one self-contained HTML file.

        Parameters
        ----------
        path : path, optional
            Where to write it as well.
        ledger : path or LedgerStore, optional
            The table's ledger file: what was spent, and what is left.
        attach : sequence of paths
            Results that ``privet audit --out`` wrote.

        Privacy
        -------
        Everything in it is public, or was released before, so that it costs nothing. A result for
        the owner's eyes only makes the page one, too: it says so at its top.
        """
        from privet.report import Facts, read_attachment, to_html

        if ledger is not None and not isinstance(ledger, LedgerStore):
            ledger = LedgerStore(Path(ledger))
        books = None if ledger is None else ledger.books
        page = to_html(Facts(self, books, tuple(read_attachment(one) for one in attach)))
        if path is not None:
            with OutputFile(path) as output:
                output.write(page)
        return page

    def to_json(self) -> str:
        """Return the text of the model file."""
        return json.dumps(self.to_dict(), allow_nan=False, separators=(",", ":"))

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data: what the file holds."""
        tested = {} if self.evaluation is None else {"evaluation": self.evaluation.to_dict()}
        recorded = {} if self.record is None else {"record": self.record.to_dict()}
        return {
            "format": FORMAT,
            "version": VERSION if recorded else 3 if tested else 2,
            "learner": self.learner,
            "privacy": self.privacy.to_dict(),
            "schema": self.schema.to_dict(),
            _KEYS[type(self.predictor)]: self.predictor.to_dict(),
            **tested,
            **recorded,
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
        known = {"format", "version", "learner", "privacy", "schema", *_KEYS.values()}
        known |= {"evaluation"} if version >= 3 else set()
        known |= {"record"} if version >= 4 else set()
        if set(plain) - known:
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
        wide = {1, len(schema.classes or ())}
        if any(len(count.values) not in wide for count in card.counts) or (
            card.declared_rows is not None and not card.rows_declared
        ):
            raise ModelFileError(
                "the privacy card contradicts itself, or the schema, about numbers of records"
            )
        return cls(
            predictor=kinds[0].from_dict(plain[_KEYS[kinds[0]]], schema),
            privacy=card,
            learner=plain["learner"],
            evaluation=_read_evaluation(plain["evaluation"], schema)
            if "evaluation" in plain
            else None,
            record=Record.from_dict(plain["record"], len(card.entries))
            if "record" in plain
            else None,
        )


def _read_evaluation(plain: Any, schema: Schema) -> Evaluation:
    low, high = schema.bounds or (0.0, 1.0)
    return Evaluation.from_dict(plain, schema.classes, high - low)


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
        return as_float(budget.epsilon)
    return float("inf")


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):  # another reader might take the other one
        raise ModelFileError("a model file has no key twice")
    return found


def _refuse_constant(_: str) -> float:
    raise ModelFileError("a model file holds no NaN or infinity")


def _to_json(value: Any) -> Any:
    if isinstance(value, Entry | NoisyCount):
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


def _read_whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**62:
        raise ModelFileError("the privacy card has a whole number that is none")
    return value


def _read_rows(value: Any) -> int:
    if _read_whole(value) < 1:
        raise ModelFileError("the privacy card declares no rows")
    return int(value)


def _read_counts(value: Any) -> tuple[NoisyCount, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= 2:
        raise ModelFileError("the privacy card's numbers of records are damaged")
    return tuple(_read_count(item) for item in value)


def _read_count(plain: Any) -> NoisyCount:
    if not isinstance(plain, dict) or set(plain) != {"values", "deviation"}:
        raise ModelFileError("the privacy card's numbers of records are damaged")
    values, deviation = plain["values"], _read_number(plain["deviation"])
    if not isinstance(values, list) or not 0 < len(values) <= MAX_BINS or math.isinf(deviation):
        raise ModelFileError("the privacy card's numbers of records are damaged")
    return NoisyCount(tuple(map(_read_whole, values)), deviation)


_OPTIONAL_READERS: dict[str, Callable[[Any], Any]] = {
    "counts": _read_counts,
    "declared_rows": _read_rows,
}

_CARD_READERS: dict[str, Callable[[Any], Any]] = {
    "float": _read_number,
    "str": _read_text,
    "str | None": _read_text_or_none,
    "bool": _read_truth,
    "tuple[str, ...]": _read_texts,
}
