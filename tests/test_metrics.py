"""The names and definitions of the metrics, and the two that look at many streams."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import pytest

from streamlab import judge, synth
from streamlab.analysis.metrics import (
    FORMULAS,
    PHASE_FORMULAS,
    Metrics,
    Phase,
    goodput,
)


@pytest.mark.parametrize(
    ("formulas", "values"), [(FORMULAS, Metrics), (PHASE_FORMULAS, Phase)], ids=["stream", "phase"]
)
def test_every_metric_says_which_formula_it_follows(
    formulas: dict[str, str], values: type[msgspec.Struct]
) -> None:
    assert list(formulas) == list(values.__struct_fields__)
    assert all(formulas.values())


class Judged(NamedTuple):
    complete: bool
    metrics: Metrics | None


def measured() -> Metrics:
    metrics = judge(synth.change_label()).metrics
    assert metrics is not None
    return metrics


WHOLE, CUT, UNTIMED = Judged(True, measured()), Judged(False, measured()), Judged(True, None)


@pytest.mark.parametrize(
    ("outcomes", "objectives", "expected"),
    [
        ([WHOLE, WHOLE], {}, 0.2),
        ([WHOLE, CUT], {}, 0.1),
        ([UNTIMED], {}, 0.1),
        ([UNTIMED], {"ttft_s": 9.0}, 0.0),
        ([WHOLE], {"ttft_s": 0.5}, 0.1),
        ([WHOLE], {"ttft_s": 0.3}, 0.0),
        ([WHOLE], {"ttft_s": 0.5, "tpot_s": 0.001}, 0.0),
        ([WHOLE], {"time_to_first_thinking_s": 60.0}, 0.0),
        ([WHOLE], {"output_tokens_per_s": 20.0}, 0.1),
        ([WHOLE], {"output_tokens_per_s": 50.0}, 0.0),
        ([], {}, 0.0),
    ],
    ids=[
        *("whole ones count", "an incomplete one never counts", "without times, completeness does"),
        *("an unknown metric meets nothing", "met", "missed", "all must be met"),
        *("no thinking is not fast thinking", "a rate is a least", "a rate missed", "none"),
    ],
)
def test_goodput_counts_complete_streams_that_meet_every_objective(
    outcomes: list[Judged], objectives: dict[str, float], expected: float
) -> None:
    assert goodput(outcomes, seconds=10, **objectives) == pytest.approx(expected)
