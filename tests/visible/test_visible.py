"""Text of others, shown: one line, nothing hidden."""

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from privet.visible import quoted, visible


@given(st.text(st.characters(), max_size=40))
def test_nothing_but_printable_characters_is_left(text):
    shown = visible(text)
    assert shown.isprintable()
    assert "\n" not in shown
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert visible(shown) == shown


def test_plain_text_of_any_language_stays():
    for text in ("age", "größe", "年齢", "ηλικία", "السن", "हिन्दी", "🙂", "[red]"):
        assert visible(text) == text


def test_what_is_not_seen_is_made_visible():
    hidden = (
        "\x00\x07\x08\r\n\x1b\x7f\x85\x9b\u00a0\u00ad\u061c\u200b\u200f\u2028\u202e\u2066\ufeff"
    )
    blank = "\u034f\u115f\u1160\u2800\u3164\uffa0\ufe0f\U000e0061\U000e0100"
    for character in hidden + blank:
        assert visible(character).startswith("\\"), hex(ord(character))


def test_stacks_of_marks_end():
    shown = visible("e" + "\u0301" * 50)
    assert shown.startswith("e" + "\u0301" * 4 + "\\u0301")


def test_long_text_is_cut_with_a_note():
    assert visible("x" * 30, 20) == "x" * 20 + "… (10 more characters)"
    assert visible("x" * 20, 20) == "x" * 20
    assert quoted("y" * 100_000).endswith("more characters)'")
    assert len(quoted("\x00" * 100_000)) < 400
