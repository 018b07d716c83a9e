"""What is in a drawing: its words with the room they take, for the tests of figures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from xml.etree import ElementTree

from rich.cells import cell_len

from streamlab.analysis.figures.drawing import CELL, SIZE, Drawing

SVG = "{http://www.w3.org/2000/svg}"

Box = tuple[str, float, float, float, float]


def parsed(drawn: Drawing) -> ElementTree.Element:
    return ElementTree.fromstring(drawn.svg)


def texts(drawn: Drawing) -> list[str]:
    return ["".join(text.itertext()) for text in parsed(drawn).iter(f"{SVG}text")]


def boxes(drawn: Drawing) -> Iterator[Box]:
    """Every text with the room that it takes, at most."""
    for text in parsed(drawn).iter(f"{SVG}text"):
        said, size = "".join(text.itertext()), float(text.get("font-size", SIZE))
        wide = cell_len(said) * CELL * size
        back = {"start": 0.0, "middle": 0.5, "end": 1.0}[text.get("text-anchor", "start")]
        x, y = float(text.attrib["x"]) - back * wide, float(text.attrib["y"])
        yield said, x, y - size * 0.8, x + wide, y + size * 0.22


def overlapping(found: list[Box]) -> list[tuple[str, str]]:
    return [
        (a[0], b[0])
        for a, b in combinations(found, 2)
        if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]


def lightness(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21."""
    low, high = sorted((lightness(one), lightness(other)))
    return (high + 0.05) / (low + 0.05)
