"""Metadata that people have already: CSVW with privacy (CSVW-SAFE, csvw-eo), and SmartNoise.

Both say of columns which type they have, and some bounds and keys. What they say is taken as
public, as whoever wrote it says; what they do not say stays unknown, and can be discovered
(:meth:`privet.Schema.discover`). Text of strangers is parsed, checked, and never executed: YAML is
read by PyYAML's safe loader (``pip install privet[metadata]``).

CSVW: ``datatype``, ``minimum`` and ``maximum`` of a column (also within its datatype),
``publicKeys`` (or ``keyValues``), values of ``partitions``, ``privacyId``; of the table ``name``,
``privacyUnit``, ``publicLength``. Names of terms are known with and without a prefix such as
``csvw-safe:public.``.
SmartNoise: ``type``, ``lower``, ``upper``, ``private_id`` of a column; ``rows`` and ``row_privacy``
of the table. A bound on contributions above one (``maxContributions``, ``max_ids``) becomes
``rows_per_unit``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privet.errors import SchemaError
from privet.kinds import Kinds
from privet.schema import MAX_FILE_BYTES, Categorical, Date, Feature, Integer, Numeric, Schema
from privet.visible import quoted

#: Types of both formats, by the kind that they make.
_TYPES = {
    "integer": (
        "integer int long short byte nonNegativeInteger positiveInteger nonPositiveInteger "
        "negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte"
    ),
    "number": "number decimal double float",
    "date": "date datetime dateTime dateTimeStamp",
    "category": "string boolean str bool normalizedString token anyURI any text",
}
_KIND_OF = {word: kind for kind, words in _TYPES.items() for word in words.split()}
_CSVW_TYPE = {"integer": "integer", "number": "double", "date": "date", "category": "string"}
_SMARTNOISE_TYPE = {"integer": "int", "number": "float", "date": "datetime", "category": "string"}
#: What SmartNoise says of a table, not of a column.
_OPTIONS = {
    "max_ids",
    "row_privacy",
    "rows",
    "rows_exact",
    "sample_max_ids",
    "censor_dims",
    "clamp_counts",
    "clamp_columns",
    "use_dpsu",
    "tau",
}
_MOST_TABLES = 1_000


def read_metadata(path: str | Path, target: str) -> Kinds:
    """Read metadata as kinds, with all that they say of the columns.

    Parameters
    ----------
    path : path
        ``.json`` (CSVW) or ``.yaml``, ``.yml`` (SmartNoise).
    target : str
        The column to predict, which these formats do not name.
    """
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in (".json", ".yaml", ".yml"):
        raise SchemaError(f"cannot tell what {path} is: name it .json (CSVW) or .yaml (SmartNoise)")
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise SchemaError(f"cannot read the metadata file {path}") from None
    if len(raw) > MAX_FILE_BYTES:
        raise SchemaError(f"{path} is too large: more than {MAX_FILE_BYTES:,} bytes")
    plain = _json(text, path) if ending == ".json" else _yaml(text, path)
    found = _of_csvw(plain, target) if ending == ".json" else _of_smartnoise(plain, target)
    return Kinds(target=target, **found)


def _json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(f"{path} is not valid JSON") from None


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise SchemaError("SmartNoise's YAML needs PyYAML: pip install privet[metadata]") from None
    if "&" in text or "*" in text:
        # Anchors and aliases: a short text can stand for a very long one.
        names = [t for t in yaml.scan(text) if isinstance(t, yaml.AliasToken | yaml.AnchorToken)]
        if names:
            raise SchemaError(f"{path} has anchors, which no metadata need")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        raise SchemaError(f"{path} is not valid YAML") from None


def _of_csvw(plain: Any, target: str) -> dict[str, Any]:
    table = _terms(plain)
    if isinstance(table.get("tables"), list) and table["tables"]:
        if len(table["tables"]) > 1:
            raise SchemaError("the metadata describe several tables; keep the one that is meant")
        table = _terms(table["tables"][0])
    columns = _terms(table.get("tableSchema")).get("columns")
    if not isinstance(columns, list) or not columns:
        raise SchemaError("the metadata have no tableSchema with columns: they are no CSVW")
    unit, found = table.get("privacyUnit"), {}
    for each in columns:
        column = _terms(each)
        name = _name(column)
        if column.get("privacyId") is True:
            if unit not in (None, name):
                raise SchemaError("the metadata name two columns as the unit of privacy")
            unit = name
        if name == unit or column.get("virtual") is True:
            continue
        if name in found:
            raise SchemaError(f"the metadata list column {quoted(name)} twice")
        found[name] = _csvw_column(column, name)
    length = table.get("publicLength", table.get("length"))
    return _facts(found, unit, table.get("name"), length, table.get("maxContributions"), target)


def _csvw_column(column: Mapping[str, Any], name: str) -> str | Feature:
    datatype = column.get("datatype", "string")
    limits = column
    if isinstance(datatype, Mapping):
        within = _terms(datatype)
        limits = {**within, **column}
        datatype = within.get("base", "string")
    kind = _kind(datatype, name)
    low, high = (_first(limits, *names) for names in (_LOWEST, _HIGHEST))
    keys = _first(column, "publicKeys", "keyValues", "keys")
    if keys is None and isinstance(column.get("partitions"), list):
        cells = [_terms(_terms(part).get("predicate")) for part in column["partitions"]]
        values = [_first(cell, "partitionValue") for cell in cells]
        keys = None if any(value is None for value in values) else values
    return _column(kind, name, low, high, keys)


_LOWEST = ("minimum", "minInclusive", "minExclusive")
_HIGHEST = ("maximum", "maxInclusive", "maxExclusive")


def _of_smartnoise(plain: Any, target: str) -> dict[str, Any]:
    tables = _smartnoise_tables(plain)
    if len(tables) != 1:
        raise SchemaError(
            "the metadata must describe one table: collection, schema, table, columns"
        )
    ((table, held),) = tables.items()
    unit, found = None, {}
    for name, each in held.items():
        if name in _OPTIONS and not isinstance(each, Mapping):
            continue
        if not isinstance(each, Mapping):
            raise SchemaError(f"column {quoted(str(name))} of the metadata says nothing")
        if each.get("private_id") is True:
            unit = str(name)
            continue
        kind = _kind(each.get("type"), str(name))
        found[str(name)] = _column(kind, str(name), each.get("lower"), each.get("upper"), None)
    if held.get("row_privacy") is True:
        unit = None
    rows = held.get("rows") if held.get("rows_exact") is not False else None
    return _facts(found, unit, table, rows or None, held.get("max_ids"), target)


def _smartnoise_tables(plain: Any) -> dict[str, Mapping[Any, Any]]:
    """Return the tables below collections and schemas."""
    found: dict[str, Mapping[Any, Any]] = {}
    for schemas in _entries(plain):
        for tables in _entries(schemas):
            for name, table in tables.items() if isinstance(tables, Mapping) else ():
                if isinstance(table, Mapping) and len(found) < _MOST_TABLES:
                    found[str(name)] = table
    return found


def _entries(plain: Any) -> list[Any]:
    return list(plain.values()) if isinstance(plain, Mapping) else []


def _facts(
    columns: dict[str, str | Feature],
    unit: Any,
    table: Any,
    rows: Any,
    most: Any,
    target: str,
) -> dict[str, Any]:
    if unit is not None and not isinstance(unit, str):
        raise SchemaError("the metadata's unit of privacy is no name of a column")
    if target not in columns:
        raise SchemaError(
            f"the metadata have no column {quoted(target)}, which shall be predicted; name one of "
            "their columns as the target"
        )
    # A person of the metadata with a single record is one of ours with any number of records.
    whole = most if unit is not None and type(most) is int and most > 1 else None
    return {
        "columns": columns,
        "unit": unit,
        "rows_per_unit": whole,
        "table": table if isinstance(table, str) and table else None,
        "n_rows": rows if type(rows) is int and rows > 0 else None,
    }


def _terms(plain: Any) -> dict[str, Any]:
    """Return the terms of a description without prefixes: csvw-safe:public.length is length."""
    if not isinstance(plain, Mapping):
        return {}
    return {str(key).rpartition(":")[2].rpartition(".")[2]: held for key, held in plain.items()}


def _first(held: Mapping[str, Any], *names: str) -> Any:
    return next((held[name] for name in names if held.get(name) is not None), None)


def _name(column: Mapping[str, Any]) -> str:
    name = _first(column, "name", "titles")
    if isinstance(name, list) and name:
        name = name[0]
    if not isinstance(name, str) or not name:
        raise SchemaError("the metadata have a column without a name")
    return name


def _kind(datatype: Any, name: str) -> str:
    word = datatype.rpartition(":")[2] if isinstance(datatype, str) else None
    if word not in _KIND_OF:
        raise SchemaError(
            f"column {quoted(name)} of the metadata has a type that is not known; known: "
            f"{', '.join(sorted(_KIND_OF))}"
        )
    return _KIND_OF[word]


def _column(kind: str, name: str, low: Any, high: Any, keys: Any) -> str | Feature:
    """Return what is said of a column: all of it, or its kind alone."""
    try:
        if isinstance(keys, Sequence) and not isinstance(keys, str) and keys:
            return Categorical(list(keys))
        if kind == "category" or low is None or high is None:
            return kind
        if kind == "date":
            return Date(_day(low), _day(high))
        return Integer(low, high) if kind == "integer" else Numeric(low, high)
    except SchemaError as error:
        raise SchemaError(f"column {quoted(name)} of the metadata: {error}") from None


def _day(value: Any) -> Any:
    return value[:10] if isinstance(value, str) else value


def csvw_of(schema: Schema) -> str:
    """Return a schema as CSVW with the terms of csvw-eo, in JSON."""
    columns: list[dict[str, Any]] = []
    for name, feature in _columns(schema).items():
        column: dict[str, Any] = {"@type": "csvw:Column", "name": name}
        column["datatype"] = _CSVW_TYPE[_kind_of(feature)]
        if isinstance(feature, Categorical):
            column |= {"publicKeys": list(feature.values), "exhaustiveKeys": False}
        else:
            column |= {
                "minimum": feature.written(feature.low),
                "maximum": feature.written(feature.high),
            }
        columns.append(column)
    plain: dict[str, Any] = {
        "@context": "http://www.w3.org/ns/csvw",
        "@type": "csvw:Table",
        "name": schema.table or "table",
    }
    if schema.unit is not None:
        plain["privacyUnit"] = schema.unit
        columns.append({"@type": "csvw:Column", "name": schema.unit, "privacyId": True})
        if schema.rows_per_unit is not None:
            plain["maxContributions"] = int(schema.rows_per_unit)
    plain["tableSchema"] = {"columns": columns}
    return json.dumps(plain, indent=2) + "\n"


def smartnoise_of(schema: Schema) -> str:
    """Return a schema as SmartNoise's YAML.

    JSON is YAML, so that nothing is needed to write it. Lists of categories have no place there.
    """
    table: dict[str, Any] = {"row_privacy": schema.unit is None}
    if schema.unit is not None:
        table[schema.unit] = {"name": schema.unit, "type": "string", "private_id": True}
        if schema.rows_per_unit is not None:
            table["max_ids"] = int(schema.rows_per_unit)
    for name, feature in _columns(schema).items():
        if name in _OPTIONS:
            raise SchemaError(f"SmartNoise cannot have a column named {quoted(name)}")
        column: dict[str, Any] = {"name": name, "type": _SMARTNOISE_TYPE[_kind_of(feature)]}
        if isinstance(feature, Categorical):
            column["cardinality"] = len(feature.values)
        elif not isinstance(feature, Date):
            column |= {
                "lower": feature.written(feature.low),
                "upper": feature.written(feature.high),
            }
        table[name] = column
    return json.dumps({"": {"public": {schema.table or "table": table}}}, indent=2) + "\n"


def _columns(schema: Schema) -> dict[str, Feature]:
    target: Feature
    if schema.classes is not None:
        target = Categorical(schema.classes)
    else:
        assert schema.bounds is not None
        target = Numeric(schema.bounds[0], schema.bounds[1])
    return {**schema.features, schema.target: target}


def _kind_of(feature: Feature) -> str:
    for kind, each in (("category", Categorical), ("date", Date), ("integer", Integer)):
        if isinstance(feature, each):
            return kind
    return "number"
