"""Damaged and hostile model and schema files, the same ones for the same seed.

Every file starts as one that Privet wrote. Then bytes are changed, cut, moved or doubled; or a
field is replaced by something that it cannot be, such as lists in lists, numbers with thousands of
digits or text that a terminal obeys; or a name is replaced wherever it stands, so that the file
stays valid. Whoever reads such a file must read it or refuse it with one sentence.
"""

from __future__ import annotations

import copy
import json
import random
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import tomli_w

from privet import DiffPID3Classifier, PrivateAdditiveClassifier, PrivateTreeRegressor
from privet.errors import PrivacyLeakWarning
from privet.schema import Categorical, Numeric, Schema

#: Texts that a terminal, a markup language, a database or a reader could take for something else.
TEXTS = (
    "",
    "[/x]",
    "[red]x[/red]",
    "[green]private: the guarantee holds for the fit as described[/]",
    "Verdict: private; the guarantee holds for the fit as described",
    "x\nVerdict: private; the guarantee holds for the fit as described",
    "x\r\nError: all is well",
    "\x1b[2J\x1b[H\x1b[32mprivate",
    "\x1b]0;title\x07",
    "\x9b31m\x85\x00\x7f\x08\x08\x08",
    "\u202e\u2066etavirp\u2069\u200b\u200d\ufeff\u2028\u2029\u00ad",
    "\u3164\u2800\u115f\ufe0f" + "e" + "\u0301" * 40,
    "'; DROP TABLE patients; --",
    "\"\"\"'''\\",
    "</text><script>alert(1)</script>",
    "{0} %s %n $(id) `id`",
    "🙂" * 20,
    "a" * 5_000,
    "=1+1",
)
#: Half a pair of surrogates: JSON can say it, no file can hold it.
_SURROGATE = "half \ud800"
#: What stands in JSON or TOML where something else was.
RAW = (
    "[" * 60 + "]" * 60,
    "[" * 20_000 + "]" * 20_000,
    "1e400",
    "-1e400",
    "1" * 5_000,
    "-" + "9" * 400,
    "9223372036854775808",
    "-1",
    "0",
    "0.5",
    "1e-320",
    "NaN",
    "nan",
    "Infinity",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    '""',
    "1979-05-27T07:32:00Z",
    "0x" + "f" * 3_000,
    '"' + "a" * 200_000 + '"',
)
_MARK = "@hostile@"


def mutated_models(seed: int, count: int) -> Iterator[bytes]:
    """Yield damaged and hostile model files."""
    generator = random.Random(seed)
    originals = _models()
    for _ in range(count):
        plain = json.loads(generator.choice(originals))
        yield _mutated(generator, plain, json.dumps, (*TEXTS, _SURROGATE))


def mutated_schemas(seed: int, count: int) -> Iterator[bytes]:
    """Yield damaged and hostile schema files."""
    generator = random.Random(seed)
    for _ in range(count):
        plain = copy.deepcopy(generator.choice(_SCHEMAS).to_dict())
        if generator.random() < 0.1:
            yield _awkward_toml(generator, tomli_w.dumps(plain)).encode()
        else:
            yield _mutated(generator, plain, tomli_w.dumps, TEXTS)


def _mutated(
    generator: random.Random, plain: Any, write: Callable[[Any], str], texts: tuple[str, ...]
) -> bytes:
    """Return a file with one kind of damage, or with several changes of fields."""
    kind = generator.randrange(10)
    if kind < 3:
        return _with_other_bytes(generator, write(plain).encode())
    if kind < 6:
        return _renamed(generator, plain, write, texts).encode()
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        _change_a_field(generator, plain, texts)
    try:
        text = write(plain)
    except (TypeError, ValueError):  # TOML has no null and no lists of everything
        text = write({"target": _MARK})
    raw = generator.choice(RAW)
    return text.replace(f'"{_MARK}"', raw).replace(f"'{_MARK}'", raw).encode()


def _with_other_bytes(generator: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(generator.choice((1, 1, 2, 8))):
        place = generator.randrange(len(changed) + 1)
        end = min(len(changed), place + generator.choice((1, 2, 5, 40)))
        action = generator.randrange(6)
        if action == 0 and place < len(changed):
            changed[place] ^= 1 << generator.randrange(8)
        elif action == 1:
            del changed[place:]
        elif action == 2:
            del changed[place:end]
        elif action == 3:
            changed[place:place] = changed[place:end]
        elif action == 4:
            changed[place:place] = generator.randbytes(end - place)
        else:
            changed[place:place] = generator.choice(RAW).encode()[:1000]
    return bytes(changed)


def _renamed(
    generator: random.Random, plain: Any, write: Callable[[Any], str], texts: tuple[str, ...]
) -> str:
    """Replace one text wherever it stands, so that most files stay valid."""
    found = sorted(set(_texts(plain)) - {"privet-model", "numeric", "categorical"})
    old, new = generator.choice(found), generator.choice(texts)
    try:
        return write(_replaced(plain, old, new))
    except (TypeError, ValueError):
        return write(plain)


def _texts(plain: Any) -> Iterator[str]:
    """Yield all texts that are no keys of the format: values, and names of features."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict):
        for key, value in plain.items():
            if isinstance(value, dict) and value.get("type") in ("numeric", "categorical"):
                yield key
            yield from _texts(value)
    elif isinstance(plain, list):
        for value in plain:
            yield from _texts(value)


def _replaced(plain: Any, old: str, new: str) -> Any:
    if isinstance(plain, dict):
        return {
            new if key == old else key: _replaced(value, old, new) for key, value in plain.items()
        }
    if isinstance(plain, list):
        return [_replaced(value, old, new) for value in plain]
    return new if plain == old else plain


def _change_a_field(generator: random.Random, plain: Any, texts: tuple[str, ...]) -> None:
    """Replace, delete, double or rename something at a random place."""
    holders = [holder for holder in _holders(plain) if holder]
    if not holders:
        return
    holder = generator.choice(holders)
    key = generator.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    action = generator.randrange(8)
    if action == 0:
        del holder[key]
    elif action == 1:
        holder[key] = [holder[key]]
    elif action == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[key]))
    elif action == 3 and isinstance(holder, dict):
        holder[generator.choice(texts)] = holder.pop(key)
    elif action == 4:
        holder[key] = generator.choice(texts)
    else:
        holder[key] = _MARK


def _holders(plain: Any) -> Iterator[Any]:
    if isinstance(plain, dict | list):
        yield plain
        for value in plain.values() if isinstance(plain, dict) else plain:
            yield from _holders(value)


def _awkward_toml(generator: random.Random, text: str) -> str:
    """Return text that a reader of TOML may take long for, or another path through."""
    lines = text.split("\n")
    place = generator.randrange(len(lines) + 1)
    lines[place:place] = [
        generator.choice(
            (
                "a." * 20_000 + "a = 1",
                "[" + "a." * 5_000 + "a]",
                "a = " + "[" * 3_000,
                "a = " + "{a = " * 2_000,
                'a = ["""x"""", {' + "a." * 9_000 + "a = 1}]",
                'a = """' + "\\\n" * 5_000,
                "a = '''" + "'" * 2_000,
                "#" + "\x00" * 10,
                "\r\r\r",
                "\ufeff",
                '"' * 9_000,
                "[[features]]",
                "[features.x.y]",
                "features = 1",
                'target = "again"',
            )
        )
    ]
    return "\n".join(lines)


_FEATURES = {
    "age": Numeric(0, 120, bins=4),
    "ward": Categorical(["north", "south, old", "west"]),
    "visits": Numeric(0, 10, edges=[1, 2, 5]),
}
_SCHEMAS = (
    Schema(_FEATURES, "readmitted", classes=["no", "yes"], table="patients 2026"),
    Schema(_FEATURES, "outcome", classes=["well", "ill", "worse"]),
    Schema(_FEATURES, "cost", bounds=(0, 100)),
)


@cache
def _models() -> tuple[str, ...]:
    """Return small models of several kinds as JSON, the same ones in every process."""
    generator = np.random.default_rng(7)
    rows = 200
    X = np.empty((rows, 3), dtype=object)
    X[:, 0] = generator.uniform(0, 120, rows)
    X[:, 1] = generator.choice(["north", "south, old", "west"], rows)
    X[:, 2] = generator.uniform(0, 10, rows)
    made = []
    for schema in _SCHEMAS:
        if schema.classes is None:
            y = X[:, 0].astype(float) / 2
            learners = [PrivateTreeRegressor(epsilon=20.0, max_depth=2, n_rows=rows)]
        else:
            classes = np.array(schema.classes)
            y = classes[(X[:, 0].astype(float) // 41).astype(int) % len(classes)]
            learners = [DiffPID3Classifier(epsilon=20.0, max_depth=2)]
            learners += [PrivateAdditiveClassifier(epsilon=20.0)]
        for learner in learners:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PrivacyLeakWarning)  # the fixed random_state
                fitted = learner.set_params(schema=schema, random_state=7).fit(X, y)
            made.append(json.dumps(fitted.to_model().to_dict()))
    return tuple(made)
