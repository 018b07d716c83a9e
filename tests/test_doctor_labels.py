"""The doctor against recordings whose fault is known: a confusion table, held to a least score.

`python -m tests.test_doctor_labels` prints the tables; a failing test shows its own.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import NamedTuple

import pytest

from streamlab import judge
from streamlab.analysis.doctor import LAYERS, diagnose
from streamlab.analysis.doctor.verdicts import VERDICTS
from tests.labelled import CAUSES, WIRES, cases

#: Three sets of seeds that have none in common: the labels were made with the first.
SEEDS = {"known": range(3), "new": range(4000, 4003), "far": range(999_000, 999_003)}

LEAST_VERDICT, LEAST_LAYER = 0.95, 0.85


class Score(NamedTuple):
    """How the doctor did on one set."""

    verdicts: Counter[tuple[str, str]]  #: (label, said) -> how many
    layers: Counter[tuple[str, str]]
    missed: tuple[str, ...]

    def right(self, table: Counter[tuple[str, str]]) -> float:
        """The share on the diagonal."""
        return sum(n for (label, said), n in table.items() if label == said) / table.total()

    def __str__(self) -> str:
        tables = [_table("verdict", self.verdicts), _table("layer", self.layers)]
        return "\n\n".join([*tables, "\n".join(self.missed)])


def _table(name: str, table: Counter[tuple[str, str]]) -> str:
    """A row for each label, with what was said and how often."""
    lines = [f"{name}: {sum(n for (a, b), n in table.items() if a == b)} of {table.total()} right"]
    for label in sorted({label for label, _ in table}):
        said = {what: n for (of, what), n in table.items() if of == label}
        told = ", ".join(f"{what or 'nobody'} {n}" for what, n in sorted(said.items()))
        lines.append(f"  {label or 'nobody':<16}{sum(said.values()):>5}  {told}")
    return "\n".join(lines)


@cache
def score(name: str) -> Score:
    """Diagnose a whole set."""
    verdicts, layers = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    missed = []
    for case in cases(SEEDS[name]):
        found = diagnose(judge(case.recording, case.policy))
        verdicts[case.verdict, found.verdict] += 1
        layers[case.layer, found.layer] += 1
        if (found.verdict, found.layer) != (case.verdict, case.layer):
            label = f"{case.verdict}, {case.layer or 'nobody'}"
            missed.append(f"{case.name}: {label}; said {found.verdict}, {found.layer or 'nobody'}")
    return Score(verdicts, layers, tuple(missed))


@pytest.mark.parametrize("name", SEEDS)
def test_the_verdict_is_the_causes_in_95_of_100_cases(name: str) -> None:
    found = score(name)
    assert found.right(found.verdicts) >= LEAST_VERDICT, f"\n{found}"


@pytest.mark.parametrize("name", SEEDS)
def test_the_layer_is_the_causes_in_85_of_100_cases(name: str) -> None:
    found = score(name)
    assert found.right(found.layers) >= LEAST_LAYER, f"\n{found}"


def test_no_verdict_is_always_missed_and_no_layer_is() -> None:
    found = score("new")
    for table in (found.verdicts, found.layers):
        assert {label for label, said in table if label == said} == {label for label, _ in table}


def test_the_labelled_set_is_large_mixed_and_knows_every_verdict_and_layer() -> None:
    made = list(cases(SEEDS["known"]))
    assert len(made) >= 150
    assert {case.verdict for case in made} == set(VERDICTS)
    assert {case.layer for case in made} == {"", *LAYERS}
    assert {case.recording.ending for case in made} == {
        "eof",
        "cut",
        "reset",
        "timeout",
        "cancelled",
    }
    for wire in WIRES:
        assert sum(f" on {wire}, " in case.name for case in made) >= 100
    assert {case.name.partition(" on ")[0] for case in made} == set(CAUSES)


def test_new_seeds_make_new_recordings() -> None:
    known, new = ({case.recording.data for case in cases(SEEDS[name])} for name in ("known", "new"))
    assert len(new - known) > len(new) * 0.8


if __name__ == "__main__":
    for each in SEEDS:
        print(f"{each} seeds, {SEEDS[each]}\n{score(each)}\n")
