"""The names and definitions of the metrics, and the two that look at many streams."""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
import pytest

from streamlab import UsageError, judge, synth
from streamlab.analysis.metrics import (
    BUFFERED_ADVICE,
    FORMULAS,
    MANY_FORMULAS,
    PHASE_FORMULAS,
    Metrics,
    Phase,
    Stalls,
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


def test_so_does_the_one_that_looks_at_many_streams() -> None:
    assert [*MANY_FORMULAS] == [goodput.__name__]


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


@pytest.mark.parametrize(
    ("name", "bound", "met"),
    [
        ("icl_s.p99", 9.0, True),
        ("icl_s.p99", 0.0, False),
        ("stalls.count", 0, True),
        ("phases.text.ttfc_s", 9.0, True),
        ("phases.thinking.ttfc_s", 9.0, False),
        ("phases.tool.output_tokens_per_s", 1.0, False),
        ("held", 0.0, True),
    ],
    ids=[
        *("a percentile", "a percentile missed", "no stall", "a phase", "a phase that never was"),
        *("a rate that is not known", "nothing held back"),
    ],
)
def test_an_objective_may_be_inside_another_metric(name: str, bound: float, met: bool) -> None:
    assert goodput([WHOLE], 1.0, **{name: bound}) == met


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("ttft", "'ttft' is none of ttfc_s, ttft_s, "),
        ("icl_s.p95", "'p95' is none of median, p90, "),
        ("phases.talk.ttfc_s", "'talk' is none of thinking, text, tool"),
        ("ttft_s.seconds", "'seconds' is none of"),
    ],
    ids=["no metric", "no percentile", "no phase", "inside a number"],
)
def test_an_objective_that_names_no_metric_is_refused_not_missed(name: str, says: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"objective '{name}': {says}")):
        goodput([WHOLE], 1.0, **{name: 1.0})


def phase(events: int, together: float, held: float) -> Phase:
    return Phase(events, 1.0, 2.0, None, None, None, None, Stalls(), held > 0.5, together, held)


@pytest.mark.parametrize(
    ("buffered", "phases", "says"),
    [
        (False, {"text": phase(40, 0.1, 0.0)}, ""),
        (True, {"text": phase(40, 1.0, 1.0)}, BUFFERED_ADVICE),
        (True, {"text": phase(40, 1.0, 1.0), "tool": phase(9, 1.0, 1.0)}, BUFFERED_ADVICE),
        (True, {"text": phase(3, 0.0, 0.0), "tool": phase(9, 1.0, 1.0)}, BUFFERED_ADVICE),
        (True, {"text": phase(4, 0.0, 0.0), "tool": phase(9, 1.0, 1.0)}, "tool input came at once"),
        (False, {"text": phase(40, 0.0, 0.0), "tool": phase(9, 1.0, 1.0)}, "but text as it was"),
        (
            True,
            {"thinking": phase(40, 1.0, 0.9), "text": phase(20, 0.2, 0.0)},
            "thinking came at once",
        ),
    ],
    ids=[
        *("nothing was held", "all was", "all of both kinds", "too little flowed to tell"),
        *("text flowed before it", "little was held", "thinking in clumps"),
    ],
)
def test_the_advice_names_the_proxy_unless_another_kind_of_content_flowed(
    buffered: bool, phases: dict[str, Phase], says: str
) -> None:
    metrics = msgspec.structs.replace(measured(), buffered=buffered, phases=phases)
    assert metrics.advice == says if says in ("", BUFFERED_ADVICE) else says in metrics.advice
