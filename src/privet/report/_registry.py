"""An entry of the registry of deployments of differential privacy (OpenDP), in YAML.

What only people know (who releases the model, what for, where, why this epsilon) comes from a file
of theirs, and is asked for, never invented. Everything else comes from the model and its ledger.

YAML is written here by hand: texts are JSON strings, which YAML reads as they are, so that nothing
in them can become anything else, and the command needs no further package.
"""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from privet.errors import ReportError
from privet.export._words import plural
from privet.model import ADDED, EITHER
from privet.report import _words as say
from privet.report._facts import Facts, State
from privet.visible import visible

#: What `data_product_sector` may be.
SECTORS = ("Technology", "Healthcare", "Education", "Government", "Energy", "Finance")
_NEEDED = ("name", "data_curators", "description", "intended_use", "region", "registry_authors")
_PLACEHOLDER = re.compile(r"\s*(todo|tbd|fixme|xxx+|n/?a|\.{3,}|…|\?+|<.*>|-*)\s*", re.IGNORECASE)
_MAX_BYTES, _MOST_TEXT = 1 << 20, 20_000


@dataclass(frozen=True)
class Release:
    """What only the person who releases a model can say.

    Attributes
    ----------
    name, description, intended_use, region : str
    data_curators, registry_authors : tuple of str
    sector : str, optional
        One of :data:`SECTORS`.
    publication_date : str, optional
        ``"2026-01-31"``; the day of the fit if not given.
    justification, sources, notes, actors : str, optional
        Why this epsilon; links; whatever else; who may see the model, and who is trusted.
    dynamic : bool, default=False
        Whether new data come in over time.
    """

    name: str
    data_curators: tuple[str, ...]
    description: str
    intended_use: str
    region: str
    registry_authors: tuple[str, ...]
    sector: str | None = None
    publication_date: str | None = None
    justification: str | None = None
    sources: str | None = None
    notes: str | None = None
    actors: str | None = None
    dynamic: bool = False

    @classmethod
    def from_dict(cls, plain: Any) -> Release:
        """Read the table ``[release]``; what is missing, or a placeholder, is refused."""
        if not isinstance(plain, Mapping):
            raise ReportError("[release] must be a table")
        known = {one.name for one in fields(cls)}
        unknown = sorted(set(plain) - known)
        if unknown:
            raise ReportError(f"[release] has keys that are not known: {visible(str(unknown))}")
        missing = [name for name in _NEEDED if name not in plain]
        if missing:
            raise ReportError(
                f"only you can say this: add to [release] the keys {', '.join(missing)}"
            )
        found: dict[str, Any] = {}
        for name, value in plain.items():
            if name == "dynamic":
                if not isinstance(value, bool):
                    raise ReportError("dynamic must be true or false")
                found[name] = value
            elif name in ("data_curators", "registry_authors"):
                if not isinstance(value, list) or not value:
                    raise ReportError(f"{name} must be a list of names")
                found[name] = tuple(_text(one, name) for one in value)
            else:
                day = isinstance(value, datetime.date)
                found[name] = _text(value.isoformat() if day else value, name)
        if found.get("sector") not in (None, *SECTORS):
            raise ReportError(f"sector must be one of {', '.join(SECTORS)}")
        date = found.get("publication_date")
        if date is not None:
            try:
                datetime.date.fromisoformat(date)
            except ValueError:
                raise ReportError('publication_date must be a day such as "2026-01-31"') from None
        return cls(**found)


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str) or len(value) > _MOST_TEXT:
        raise ReportError(f"{name} must be text")
    if _PLACEHOLDER.fullmatch(value):
        raise ReportError(f"{name} is a placeholder: say what is true, a registry is for others")
    return value.strip()


def read_release(path: str | Path) -> Release:
    """Read the table ``[release]`` of a TOML file."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        if len(raw) > _MAX_BYTES:
            raise ReportError(f"{path} is too large")
        plain = tomllib.loads(raw.decode("utf-8"))
    except OSError as error:
        raise ReportError(f"cannot read {path}") from error
    except (ValueError, RecursionError) as error:
        if isinstance(error, ReportError):
            raise
        raise ReportError(f"{path} is not a TOML file") from error
    if "release" not in plain:
        raise ReportError(f"{path} has no table [release]")
    return Release.from_dict(plain["release"])


def to_registry(facts: Facts, release: Release) -> str:
    """Return the entry, in YAML.

    Raises
    ------
    ReportError
        If the model is not private: the registry is of deployments of differential privacy.
    """
    if facts.state is State.NOT_PRIVATE:
        raise ReportError("the model is not private, so there is nothing to register")
    return _yaml(_entry(facts, release))


def _entry(facts: Facts, release: Release) -> dict[str, Any]:
    model = facts.model
    card, schema = model.privacy, model.schema
    given = facts.guarantee
    date = release.publication_date or (model.record.date if model.record else None)
    if date is None:
        raise ReportError(
            "the model file does not say when it was made: add publication_date to [release]"
        )
    several = facts.books is not None and len(facts.books.withdrawals) > 1
    parameters: dict[str, float] = {"epsilon": given.epsilon}
    if given.delta:
        parameters["delta"] = given.delta
    if given.rho < float("inf"):
        parameters["rho"] = given.rho
    variant = {"pure": "Pure DP", "zCDP": "Zero-concentrated DP"}.get(
        card.accountant, "Approximate DP"
    )
    if card.accountant in (EITHER, ADDED):
        variant = "Approximate DP" if given.delta else "Pure DP"
    columns = "; ".join(
        f"{name}: {say.feature_words(feature)}"
        for name, feature in list(schema.features.items())[:100]
    )
    basic: dict[str, Any] = {
        "name": release.name,
        "data_curators": list(release.data_curators),
        "intended_use": release.intended_use,
        "data_product_type": "Machine learning model",
        "data_product_region": release.region,
        "description": release.description,
        "publication_date": date,
    }
    if release.sector is not None:
        basic["data_product_sector"] = release.sector
    administrative: dict[str, Any] = {"registry_authors": list(release.registry_authors)}
    for name in ("sources", "notes"):
        if getattr(release, name) is not None:
            administrative[name] = getattr(release, name)
    implementation = {
        "preprocessing_and_hyperparameter_tuning": f"{say.PREPROCESSING} "
        + f"Taken as public: {'; '.join(say.public_words(facts))}.",
        "mechanisms": _mechanisms(facts),
    }
    if release.justification is not None:
        implementation["justification"] = release.justification
    slug = re.sub(r"[^a-z0-9]+", "-", release.name.lower()).strip("-") or "model"
    return {
        "url_slug": slug[:80],
        "status": "Draft",
        "tier": 3,
        "deployment": {
            "basic": basic,
            "dp_variant": {
                "variant_name": variant,
                "data_domain": f"All tables with these columns, of any length: {columns}; "
                f"target {schema.target}.",
                "unprotected_quantities": "; ".join(say.public_words(facts)) + ".",
            },
            "privacy_loss": {
                "privacy_unit": "person (all records of one)" if card.of_persons else "record",
                "privacy_unit_details": f"Neighbouring tables: {card.adjacency}. "
                f"{say.who_words(facts)}",
                "privacy_parameters": parameters,
                "privacy_parameters_details": f"Spent: epsilon {card.epsilon:.6g}. For replacing "
                f"one {facts.whom}: epsilon {card.replace_one_epsilon:.6g}. An attacker finds at "
                "most "
                f"{given.true_positives(0.01):.2%} of members at 1 % false alarms and "
                f"{given.true_positives(0.1):.2%} at 10 %, by {facts.bound_words}.",
            },
            "deployment_model": {
                "model_name": "Central" if card.protocol is None else "Federated",
                "actors": release.actors
                or (
                    "The curator holds the rows and adds the noise. Analysts and the public see "
                    "the "
                    "model and nothing else; they may know everything else and compute anything."
                    if card.protocol is None
                    else f"Parties hold their rows, each behind a wall of its own; a coordinator "
                    f"asks them ({card.protocol}). The public sees the model, and may compute "
                    "anything."
                ),
                "release_type": "Many releases" if several else "One release",
                "release_type_details": _releases(facts),
                "data_source_type": "Dynamic" if release.dynamic else "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": say.POST_PROCESSING,
                "composition": say.composition_words(facts),
            },
            "implementation": implementation,
            "administrative": administrative,
        },
    }


def _mechanisms(facts: Facts) -> str:
    record = facts.model.record
    used = "; ".join(f"{name} ({proof})" for name, proof in facts.mechanisms)
    versions = (
        ""
        if record is None
        else " Versions: " + ", ".join(f"{k} {v}" for k, v in record.versions.items()) + "."
    )
    channels = " ".join(f"{name.capitalize()}: {state}." for name, state in say.SIDE_CHANNELS)
    return f"Learner: {say.learner_words(facts)}. Mechanisms: {used}.{versions} {channels}"


def _releases(facts: Facts) -> str:
    if facts.books is None:
        return "No ledger file was given for this entry: other releases are not known."
    books = facts.books
    return (
        f"All releases draw from one ledger with a total of {books.budget}, which never resets; "
        f"{plural(len(books.withdrawals), 'draw')} so far. When nothing is left, the table is "
        "asked no more."
    )


def _yaml(value: Any, indent: int = 0) -> str:
    """Return plain data as YAML: keys in blocks, texts as JSON strings."""
    lead = "  " * indent
    lines = []
    for key, held in value.items():
        if isinstance(held, Mapping):
            lines.append(f"{lead}{key}:\n{_yaml(held, indent + 1)}")
        elif isinstance(held, Sequence) and not isinstance(held, str):
            items = "".join(f"{lead}  - {_scalar(one)}\n" for one in held)
            lines.append(f"{lead}{key}:\n{items}")
        else:
            lines.append(f"{lead}{key}: {_scalar(held)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        # On one line, with nothing hidden; \/ and surrogates, which YAML lacks, do not occur.
        return json.dumps(visible(value), ensure_ascii=False)
    if isinstance(value, float):
        # YAML 1.1 takes 1e-06 for text: it wants a point.
        text = repr(value)
        return text if "." in text or "e" not in text else text.replace("e", ".0e")
    return json.dumps(value)
