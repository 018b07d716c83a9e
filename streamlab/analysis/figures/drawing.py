"""A drawing: a figure that stands still, and the caption that says the same in words.

matplotlib draws the shapes; the words are written into its SVG here. So they stay text, a dollar
sign is no formula, no glyph can be missing, and no place depends on a machine's fonts. The bytes
are the same in every run: what matplotlib names at random is numbered instead.

On a page the SVG is an image inside a figure. An image runs no script whatever is in it, JupyterLab
shows it in a notebook that it does not trust yet, and it follows the theme: Lab sets the page's
colour scheme, and an image's own media query asks for that. This is the only module that imports
matplotlib, and only when something is drawn.

Read next: `plots.py` and `machine.py`, which say what is drawn.
"""

from __future__ import annotations

import html as markup
import re
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
from rich.cells import cell_len, set_cell_size

from streamlab.analysis.plain import visible

__all__ = ["CELL", "WIDTH", "Board", "Drawing", "fitted", "levels", "wide"]

#: Pixels of every drawing from left to right: as much as a notebook has room for.
WIDTH = 900

#: A caption of more characters is folded on a page; as plain text it stays as it is.
MAX_CAPTION = 250

#: Width of one character of the fixed-width fonts below, in parts of their size; the widest's.
CELL = 0.61

#: Size of words where nothing else is said.
SIZE = 11

FONT = "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace"

#: Name -> on light paper, on dark paper. Each contrasts with its paper by 4.5 to 1 where words or
#: lines are drawn in it; `soft` only fills.
COLOURS = {
    "ink": ("#1c1c1c", "#e6e6e6"),
    "paper": ("#ffffff", "#111111"),
    "dim": ("#595959", "#a8a8a8"),
    "soft": ("#f0f0f0", "#262626"),
    "accent": ("#0b57b0", "#82b8ff"),
    "bad": ("#b01f1a", "#ff9d94"),
    "thinking": ("#7a2e86", "#dca6ea"),
    "tool": ("#8f4700", "#ffb454"),
    "good": ("#0b6b43", "#6fdca8"),
}

#: Those that every drawing defines; of the others only what it uses.
ALWAYS = ("ink", "paper", "dim", "soft", "accent", "bad")

#: What matplotlib is told instead of a colour's name; it is put back in the SVG.
STAND_INS = {name: f"#00{n:02x}ff" for n, name in enumerate(COLOURS)}

Points = Sequence[tuple[float, float]]


class Drawing(msgspec.Struct, frozen=True):
    """A figure that stands still: an SVG, and the same in words."""

    title: str
    caption: str
    svg: str

    def save(self, path: str | Path) -> None:
        """Write the SVG to a file."""
        Path(path).write_text(self.svg, "utf-8", newline="\n")

    def __repr__(self) -> str:
        return self.caption

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": self.caption, "text/html": self.html}

    @property
    def html(self) -> str:
        """The figure with its caption, as a page shows it."""
        source = b64encode(self.svg.encode()).decode()
        caption = markup.escape(self.caption).replace("\n", "<br>")
        if len(self.caption) > MAX_CAPTION:
            caption = f"<details><summary>in words</summary>{caption}</details>"
        image = f'<img width="{WIDTH}" alt="{markup.escape(self.title)}"'
        return (
            f'<figure style="margin: 0">{image} src="data:image/svg+xml;base64,{source}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )


def wide(text: str, size: float) -> float:
    """How wide a text is, in pixels, at most."""
    return cell_len(text) * CELL * size


def fitted(text: str, room: float, size: float) -> str:
    """A stranger's text in one line of at most `room` pixels, free of what nobody sees."""
    cells = max(1, int(room / (CELL * size)))
    shown = visible(text[: 4 * cells])
    return shown if cell_len(shown) <= cells else set_cell_size(shown, cells - 1).rstrip() + "…"


def levels(words: Sequence[tuple[float, str]], size: float) -> list[int]:
    """For words that begin at a place of a line: how many lines from it each must stand.

    From right to left, each beyond those that it would run into, or whose stroke to the line it
    would lie on.
    """
    free: list[float] = []
    found = []
    for x, text in reversed(words):
        end = x + wide(text, size) + 8
        level = next((n for n, edge in enumerate(free) if end <= edge), len(free))
        free = [x] * (level + 1) + free[level + 1 :]
        found.append(level)
    return found[::-1]


class Board:
    """Paper to draw on, in pixels from the upper left corner."""

    def __init__(self, height: float, width: float = WIDTH) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.size = width, height
        self.figure = Figure(figsize=(width / 72, height / 72), dpi=72, frameon=False)
        self.canvas = FigureCanvasSVG(self.figure)
        self.axes: Any = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, width), ylim=(height, 0))
        self.axes.set_axis_off()
        self.words: list[str] = []
        self.shapes = 0
        self.box(0, 0, width, height, fill="paper")

    def box(self, x: float, y: float, wide: float, high: float, **style: Any) -> None:
        """A rectangle; `fill`, `edge`, `width`, `dash` and `id` say how."""
        corners = [(x, y), (x + wide, y), (x + wide, y + high), (x, y + high), (x, y)]
        self.lines([corners], **style)

    def lines(self, lines: Iterable[Points], **style: Any) -> None:
        """One shape of several lines, or of several outlines where it is filled."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path as Outline

        kept = [line for line in lines if len(line) > 1]
        if not kept:
            return
        points = [point for line in kept for point in line]
        codes = []
        for line in kept:
            closed = len(line) > 2 and line[0] == line[-1]
            last = Outline.CLOSEPOLY if closed else Outline.LINETO
            codes += [Outline.MOVETO, *[Outline.LINETO] * (len(line) - 2), last]
        self.shapes += 1
        patch = PathPatch(Outline(points, codes), clip_on=False, zorder=self.shapes)
        self.axes.add_patch(_styled(patch, **style))

    def arrow(self, points: Points, **style: Any) -> None:
        """A line with a head at its end."""
        (x, y), (to_x, to_y) = points[-2], points[-1]
        length = max(abs(to_x - x) + abs(to_y - y), 1e-9)
        dx, dy = (to_x - x) / length, (to_y - y) / length
        tail = to_x - 8 * dx, to_y - 8 * dy
        sides = [(tail[0] - 4 * dy, tail[1] + 4 * dx), (tail[0] + 4 * dy, tail[1] - 4 * dx)]
        self.lines([[*points[:-1], tail]], **style)
        self.lines([[(to_x, to_y), *sides, (to_x, to_y)]], fill=style.get("edge", "ink"))

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float = SIZE,
        anchor: str = "start",
        colour: str = "ink",
        bold: bool = False,
    ) -> None:
        """A line of words; `y` is where they stand on."""
        shown = markup.escape(visible(text))
        style = f' font-size="{size:g}"' * (size != SIZE) + ' font-weight="bold"' * bold
        style += f' text-anchor="{anchor}"' * (anchor != "start")
        style += f' fill="var(--{colour})"' * (colour != "ink")
        self.words.append(f'<text x="{x:.5g}" y="{y:.5g}"{style}>{shown}</text>')

    def dot(self, x: float, y: float, colour: str = "ink") -> None:
        """A small round spot."""
        rim = ((3, 1), (1, 3), (-1, 3), (-3, 1), (-3, -1), (-1, -3), (1, -3), (3, -1), (3, 1))
        self.lines([[(x + dx, y + dy) for dx, dy in rim]], fill=colour)

    def drawing(self, title: str, caption: str) -> Drawing:
        """What was drawn, as a value."""
        out = StringIO()
        self.canvas.print_svg(out, metadata={"Date": None})  # type: ignore[no-untyped-call]
        return Drawing(title, caption, _finished(out.getvalue(), title, self.words))


def _styled(
    patch: Any,
    fill: str = "",
    edge: str = "",
    width: float = 1,
    dash: bool | Sequence[float] = False,
    id: str = "",
) -> Any:
    patch.set_facecolor(STAND_INS[fill] if fill else "none")
    patch.set_edgecolor(STAND_INS[edge] if edge else "none")
    patch.set_linewidth(width if edge else 0)
    pattern = (4, 3) if dash is True else tuple(dash or ())
    patch.set_linestyle((0, pattern) if pattern else "solid")
    patch.set_capstyle("butt")
    patch.set_joinstyle("miter")
    if id:
        patch.set_gid(f"sl-{id}")
    return patch


# --- From matplotlib's SVG to ours ----------------------------------------------------------------


def _finished(svg: str, title: str, words: Sequence[str]) -> str:
    """The same shapes without what is random, in colours that follow the theme, with the words."""
    body = svg[svg.index("<svg") : svg.rindex("</svg>")]
    opening, body = body.split(">", 1)
    size = re.findall(r'viewBox="([^"]+)"', opening)[0]
    body = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", body, flags=re.S)
    body = re.sub(r'<g id="sl-([^"]*)">\s*<path', r'<path id="\1"', _numbered(body))
    body = re.sub(r"</?g\b[^>]*>|stroke-linejoin: miter|stroke-dashoffset: 0; ", "", body)
    body = re.sub("#00(..)ff", lambda found: f"var(--{NAMES[found[1]]})", body)
    body = re.sub(r"\s+", " ", body).replace('; "', '"').replace(": ", ":").replace("; ", ";")
    body = body.replace(' "', '"').replace("> <", ">\n<")
    _, _, width, height = size.split()
    used = set(re.findall(r"var\(--(\w+)\)", body + "".join(words)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="{size}" '
            f'width="{width}" height="{height}" font-family="{FONT}" font-size="{SIZE}" '
            'fill="var(--ink)">',
            f"<title>{markup.escape(visible(title))}</title>",
            f"<style>{''.join(_schemes(used))}</style>",
            body.strip(),
            *words,
            "</svg>\n",
        ]
    )


NAMES = {value[3:5]: name for name, value in STAND_INS.items()}


def _schemes(used: Collection[str]) -> Iterator[str]:
    pairs = {name: pair for name, pair in COLOURS.items() if name in ALWAYS or name in used}
    for n, query in enumerate(("", "@media (prefers-color-scheme:dark)")):
        values = ";".join(f"--{name}:{pair[n]}" for name, pair in pairs.items())
        yield f"{query}{{svg{{{values}}}}}" if query else f"svg{{{values}}}"


def _numbered(body: str) -> str:
    """The names that matplotlib draws at random, numbered in their order."""
    found = dict.fromkeys(re.findall(r'(?:url\(#|href="#)([^)"]+)', body))
    for n, name in enumerate(found, 1):
        body = body.replace(name, f"d{n}")
    return body
