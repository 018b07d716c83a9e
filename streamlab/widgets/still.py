"""A trace that stands still: tables for a page without a kernel, and for a terminal.

The same trace gives the same text every time, without addresses or times of day, so a check that
compares notebooks compares what the view shows. Everything that a stranger wrote is clipped,
escaped, and freed of characters that nobody sees.
"""

from __future__ import annotations

import html as markup
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["escape", "html", "text"]


def escape(value: object) -> str:
    """Escape for HTML; a lone surrogate can't be written to a file, so it is replaced first."""
    return markup.escape(str(value).encode("utf-8", "replace").decode())


def rows(trace: Mapping[str, Any], most: int) -> Iterator[tuple[str, str, str]]:
    """Choose the steps worth printing: all of a few, else where something changes and just before.

    Gives (number, state, why); a gap is one row of dots, an injected step has a star.
    """
    steps = trace["steps"]
    changes = [
        i
        for i, step in enumerate(steps)
        if i in (0, len(steps) - 1)
        or step["state"] != steps[i - 1]["state"]
        or step.get("injected")
        or step.get("problems")
    ]
    if len(changes) > most // 2:
        changes = changes[: most // 2 - 1] + changes[-1:]
    around = {max(i - 1, 0) for i in changes} | set(changes)
    chosen = set(range(len(steps))) if len(steps) <= most else around
    last = -1
    for i in sorted(chosen):
        if i != last + 1:
            yield "…", "", ""
        sign = " *" if steps[i].get("injected") else ""
        yield f"{i + 1}{sign}", steps[i]["state"], _short(steps[i].get("why", ""))
        last = i


def _short(value: object, most: int = 90) -> str:
    """One line, clipped; what cannot be seen (and could turn a line, or colour it) is U+FFFD."""
    line = " ".join(str(value)[: 4 * most].split())
    line = "".join(char if char.isprintable() else "\ufffd" for char in line)
    return line if len(line) <= most else f"{line[: most - 1]}…"


def summary(trace: Mapping[str, Any], step: int) -> str:
    """Say in one line which trace this is and where the view stands."""
    steps = trace["steps"]
    state = steps[step - 1]["state"] if steps else "nothing"
    return f"{_short(trace.get('title', ''), 60)}: step {step} of {len(steps)}, {state}"


def text(trace: Mapping[str, Any], step: int = 1) -> str:
    """A trace as a small table of text: the same every time, without addresses."""
    table = list(rows(trace, 12))
    wide = max((len(state) for _, state, _ in table), default=0)
    lines = [f"{number:>6}  {state:<{wide}}  {why}".rstrip() for number, state, why in table]
    cut = f"\n        {len(trace['ghost'])} steps were cut off" if trace.get("ghost") else ""
    return "\n".join([f"Stepper: {summary(trace, step)}", *lines]) + cut


def segments(trace: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """Fold the steps' operations to the end: (id, kind, status, text) of each segment."""
    found: dict[str, list[Any]] = {}
    for operation in (op for step in trace["steps"] for op in step.get("ops", ())):
        match operation:
            case ["start", id, kind, name, *_]:
                found.setdefault(id, [f"{kind} {name}" if name else kind, "streaming", []])
            case ["append", id, piece] if id in found:
                found[id][2].append(piece)
            case ["stop", id, status, *_] if id in found:
                found[id][1] = status
    return [(id, kind, status, "".join(text)) for id, (kind, status, text) in found.items()]


def html(trace: Mapping[str, Any], at: int = 1) -> str:
    """A trace as tables of plain HTML, for a web page with no kernel; everything is escaped."""
    problems = [found for step in trace["steps"] for found in step.get("problems", ())]
    blocks = [
        f"<p><b>{escape(summary(trace, at))}</b></p>",
        _table(("step", "state", "why"), rows(trace, 24)),
        f"<p>At the end, after step {len(trace['steps'])}:</p>",
        _table(
            ("segment", "kind", "status", "text"),
            ((i, kind, status, _short(t, 60)) for i, kind, status, t in segments(trace)[:12]),
        ),
    ]
    if problems:
        found = ((p["severity"], p["rule"], _short(p["message"])) for p in problems[:8])
        blocks.append("<p>On the way:</p>")
        blocks.append(_table(("problem", "rule", "what"), found))
    return f"<div>{''.join(blocks)}</div>"


def _table(heads: tuple[str, ...], body: Any) -> str:
    def line(cells: Any, tag: str) -> str:
        row = "".join(f'<{tag} style="text-align: left">{escape(cell)}</{tag}>' for cell in cells)
        return f"<tr>{row}</tr>"

    return f"<table>{line(heads, 'th')}{''.join(line(cells, 'td') for cells in body)}</table>"
