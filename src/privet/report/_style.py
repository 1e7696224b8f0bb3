"""How a page looks: two palettes, one style sheet, and the one script that it can do without."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

#: Colours by what they are for; every text colour is readable on every ground (4.5 to 1, tested).
LIGHT = {
    "ink": "#1b2430",
    "quiet": "#4d5866",
    "ground": "#ffffff",
    "raised": "#f3f5f8",
    "line": "#c9d0d9",
    "accent": "#1f5fa8",
    "good": "#14663b",
    "good-ground": "#e3f3e9",
    "doubt": "#7a4a00",
    "doubt-ground": "#fdf0d8",
    "bad": "#a1151f",
    "bad-ground": "#fde7e7",
    "bar": "#4f87c4",
    "bar-2": "#c4650c",
    "track": "#dde3ea",
    "mark": "#fff3bf",
}
DARK = {
    "ink": "#e8ecf1",
    "quiet": "#b0bac6",
    "ground": "#12171d",
    "raised": "#1c232c",
    "line": "#3b4653",
    "accent": "#8ab8ee",
    "good": "#8fdcae",
    "good-ground": "#12301f",
    "doubt": "#f3c77a",
    "doubt-ground": "#352606",
    "bad": "#ffa8a8",
    "bad-ground": "#3b1416",
    "bar": "#6fa6e0",
    "bar-2": "#e59a4c",
    "track": "#2b3540",
    "mark": "#4a4310",
}
#: Which text stands on which ground.
TEXTS = (
    *((ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("ground", "raised")),
    ("ink", "mark"),
    ("quiet", "mark"),
    ("ink", "good-ground"),
    ("ink", "doubt-ground"),
    ("ink", "bad-ground"),
    ("good", "good-ground"),
    ("doubt", "doubt-ground"),
    ("bad", "bad-ground"),
    ("good", "ground"),
    ("doubt", "ground"),
    ("bad", "ground"),
)
#: Which shapes stand on which ground: 3 to 1.
SHAPES = (("bar", "ground"), ("bar-2", "ground"), ("accent", "ground"))


def _variables(palette: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in palette.items())


def _read(name: str) -> str:
    return files("privet.report").joinpath(name).read_text("utf-8")


def style() -> str:
    """Return the style sheet."""
    light, dark = _variables(LIGHT), _variables(DARK)
    return (
        f":root{{{light}color-scheme:light dark}}"
        f"@media(prefers-color-scheme:dark){{:root{{{dark}}}}}"
        f"@media print{{:root{{{light}color-scheme:light}}}}\n"
        f"{_read('page.css')}"
    )


def script() -> str:
    """Return the script that follows an example."""
    return _read("page.js")


def policy() -> str:
    """Return what a page may load and run: this script, and nothing from anywhere else."""
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
