"""`streamlab show --rules`: the doctor's table, for a person or as one JSON object a line."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from streamlab.analysis.doctor.examples import EXAMPLES
from streamlab.analysis.doctor.rules import RULES, Rule
from streamlab.analysis.report import to_line

__all__ = ["list_rules"]

#: Cells of a terminal's line that a sentence is wrapped in, where the terminal does not say.
INDENT = 28


def list_rules(as_json: bool) -> int:
    """Print every rule; return the exit status."""
    if as_json:
        for rule in RULES.values():
            print(to_line(_object(rule)))
        return 0
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False, soft_wrap=False)
    for source, rules in groupby(RULES.values(), key=lambda rule: rule.source):
        console.print(Text(source, "bold"))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=INDENT - 4, overflow="fold")
        table.add_column(width=7)
        table.add_column(width=7)
        table.add_column(overflow="fold")
        for rule in rules:
            table.add_row(rule.id, rule.severity, rule.layer or "-", rule.says)
        console.print(table)
        console.print()
    print(f"{len(RULES)} rules, of which {len(EXAMPLES)} have an example: see --rules --json")
    return 0


def _object(rule: Rule) -> dict[str, Any]:
    example = rule.example
    chunks = [
        {"t": chunk.t, "data": chunk.data.decode("utf-8", "backslashreplace")}
        for chunk in example.chunks
    ]
    return {
        "id": rule.id,
        "severity": rule.severity,
        "layer": rule.layer,
        "says": rule.says,
        "source": rule.source,
        "example": {"chunks": chunks, "end": example.ending, "end_t": example.end_t},
    }
