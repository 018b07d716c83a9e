"""`streamlab show --rules`: the doctor's table, for a person or as one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING, Any

from streamlab.analysis.doctor.examples import EXAMPLES
from streamlab.analysis.doctor.rules import RULES, Rule
from streamlab.analysis.report import to_line
from streamlab.cli_show import open_console

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["list_rules"]

#: Cells of a terminal's line that a sentence is wrapped in, where the terminal does not say.
INDENT = 28

#: Cells of a terminal below which a sentence has no room beside its rule.
NARROW = 70


def list_rules(as_json: bool) -> int:
    """Print every rule; return the exit status."""
    if as_json:
        for rule in RULES.values():
            print(to_line(_object(rule)))
        return 0
    from rich.text import Text

    console = open_console()
    for source, rules in groupby(RULES.values(), key=lambda rule: rule.source):
        console.print(Text(source, "bold"))
        console.print(_table(rules, console.width < NARROW))
        console.print()
    print(f"{len(RULES)} rules, of which {len(EXAMPLES)} have an example: see --rules --json")
    return 0


def _table(rules: Iterable[Rule], narrow: bool) -> Table:
    """A rule a row; where there is no room beside it, what it says is the row below."""
    from rich.padding import Padding
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=None if narrow else INDENT - 4, overflow="fold")
    if narrow:
        for rule in rules:
            table.add_row(f"{rule.id} ({rule.severity}, {rule.layer or '-'})")
            table.add_row(Padding(rule.says, (0, 0, 0, 2)))
        return table
    table.add_column(width=7)
    table.add_column(width=7)
    table.add_column(overflow="fold")
    for rule in rules:
        table.add_row(rule.id, rule.severity, rule.layer or "-", rule.says)
    return table


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
