"""Schema files that are huge, deep or absurd: limits first, then parse."""

import os
import time
import tracemalloc

import pandas as pd
import pytest

from privet.errors import SchemaError
from privet.schema import (
    LONGEST_TEXT,
    MAX_FEATURES,
    MAX_FILE_BYTES,
    Categorical,
    Numeric,
    Schema,
)

HEAD = "target = 'ill'\nclasses = ['a', 'b']\n"
AGE = "[features.age]\ntype = 'numeric'\nlow = 0\nhigh = 1\n"


def refusal(tmp_path, text: str) -> str:
    path = tmp_path / "schema.toml"
    path.write_text(text)
    with pytest.raises(SchemaError) as caught:
        Schema.from_toml(path)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 400
    return message


@pytest.mark.parametrize(
    "text",
    [
        "a." * 20_000 + "a = 1",
        "[" + "a." * 20_000 + "a]",
        "[[" + "'a' . " * 20_000 + "a]]",
        "a = [{" + '"x".' * 20_000 + "x = 1}]",
        'a = ["""x"""", {' + "a." * 20_000 + "a = 1}]",
        "a = ['''x''''', {" + "a." * 20_000 + "a = 1}]",
        "a = " + "[" * 20_000 + "]" * 20_000,
        "a = " + "{a = " * 20_000,
        "a = [\n" * 20_000,
        "# comment\n" + "a." * 20_000,
    ],
    ids=range(10),
)
def test_what_is_nested_is_refused_at_once(tmp_path, text):
    tracemalloc.start()
    start = time.process_time()
    message = refusal(tmp_path, HEAD + AGE + text)
    assert "parts" in message
    assert time.process_time() - start < 2
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_large_files_are_not_read(tmp_path):
    assert "too large" in refusal(tmp_path, HEAD + f"table = '{'x' * 20_000_000}'\n" + AGE)
    assert "too large" in refusal(tmp_path, "#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(SchemaError, match="too large"):
        Schema.from_toml("/dev/zero")
    path = tmp_path / "schema.toml"
    rest = HEAD + AGE + "#"
    path.write_text(rest + "#" * (MAX_FILE_BYTES - len(rest)))
    assert Schema.from_toml(path).names == ("age",)


RIGHT = {("table", "'1'"), ("target", "'1'"), ("edges", "[1]")}


@pytest.mark.parametrize(
    "value",
    ["9" * 5_000, "0x" + "f" * 100_000, "1e400", "-1e400", "nan", "inf", "1979-05-27",
     "1979-05-27T07:32:00Z", "07:32:00", "true", "'1'", "[1]", "{}"],
    ids=lambda value: value[:8],
)  # fmt: skip
@pytest.mark.parametrize("field", ["low", "bins", "edges", "values", "bounds", "table", "target"])
def test_every_field_is_checked(tmp_path, field, value):
    feature = f"[features.x]\ntype = 'numeric'\nlow = 0\nhigh = 1\n{field} = {value}"
    text = {
        "low": HEAD + feature.replace("low = 0\n", ""),
        "values": HEAD + f"[features.x]\ntype = 'categorical'\nvalues = [{value}, {value}]",
        "bounds": f"target = 'ill'\nbounds = [0, {value}]\n" + AGE,
        "table": f"table = {value}\n" + HEAD + AGE,
        "target": f"target = {value}\nclasses = ['a', 'b']\n" + AGE,
    }.get(field, HEAD + feature)
    if (field, value) not in RIGHT:
        refusal(tmp_path, text)


def test_messages_say_where_and_not_what(tmp_path):
    secret = "s3cr3t" * 100
    message = refusal(tmp_path, HEAD + f"'{secret}' = 1\n'{secret}' = 2\n")
    assert secret[:50] not in message
    assert "see line 4" in message
    message = refusal(tmp_path, HEAD + '"\\u001b[2J" = 1\n' + AGE)
    assert r"unknown key '\x1b[2J'" in message


def test_strings_and_comments_are_no_nesting(tmp_path):
    path = tmp_path / "schema.toml"
    odd = "[[[[[[[[[[[[.............{{{{{{{{{{"
    path.write_text(
        f"# {odd}\ntarget = 'ill{odd}'\nclasses = ['a', \"b{odd}\\\"{odd}\"]\n"
        f'table = """x"{odd}""{odd}\\"""{odd}"""\n'
        f"[features.'{odd}']\ntype = '''categorical'''\n"
        "values = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5]\n"
    )
    assert Schema.from_toml(path).names == (odd,)


def test_a_pipe_is_read_like_a_file():
    reading, writing = os.pipe()
    os.write(writing, (HEAD + AGE).encode())
    os.close(writing)
    try:
        assert Schema.from_toml(f"/dev/fd/{reading}").names == ("age",)
    finally:
        os.close(reading)


def test_texts_have_a_longest_length():
    long = "x" * (LONGEST_TEXT + 1)
    good = {"features": {"age": Numeric(0, 1)}, "target": "ill", "classes": ["a", "b"]}
    Schema(**{**good, "table": long[1:], "classes": [long[1:], "b"]})
    for change in (
        {"features": {long: Numeric(0, 1)}}, {"target": long}, {"table": long},
        {"classes": ["a", long]},
    ):  # fmt: skip
        with pytest.raises(SchemaError, match="too long"):
            Schema(**{**good, **change})
    with pytest.raises(SchemaError, match="too long"):
        Categorical([long])


def test_features_have_a_largest_number():
    features = dict.fromkeys(map(str, range(MAX_FEATURES + 1)), Numeric(0, 1))
    with pytest.raises(SchemaError, match="at most"):
        Schema(features, "y", bounds=(0, 1))


def test_a_schema_that_no_file_holds_is_not_written(tmp_path):
    values = [f"{i:0100d}x" for i in range(30_000)]
    schema = Schema({"x": Categorical(values)}, "y", bounds=(0, 1))
    with pytest.raises(SchemaError, match="at most"):
        schema.to_toml(tmp_path / "schema.toml")
    assert not list(tmp_path.iterdir())


def test_a_draft_leaves_long_texts_to_the_extra_bin():
    frame = pd.DataFrame({"word": ["a", "b" * 10_000, "c"], "y": ["no", "yes", "no"]})
    assert Schema.draft(frame, "y").features["word"].values == ("a", "c")
