"""The verdicts of `bench`: each group is judged by itself, and says whether it meets the aim."""

from __future__ import annotations

from tests.bench.__main__ import FRAMED, Explored, Row, known_ways, plain_search, verdicts

ROWS = [
    Row("text", 900, 1.0, 2.0, 20.0, 99.0),
    Row("tool JSON, 20 KB", 1000, 1.0, 2.5, 20.0, 99.0),
    Row("tool JSON, 40 KB", 2000, 1.0, 4.0, 20.0, 99.0),
    Row(f"tool JSON, 40 KB, {FRAMED}", 2000, 1.0, 9.0, 20.0, 99.0),
    Row("82 recordings, 10 times", 900, 1.0, 5.0, 20.0, 99.0),
]


def test_each_aim_is_judged_group_by_group() -> None:
    floor, raw, linear = "times the floor", "raw iteration", "twice the input"
    said = {
        (aim, line.rpartition(" (")[2][:-1]): line.partition(": ")[2].partition(" (")[0]
        for aim in (floor, raw, linear)
        for line in verdicts(ROWS)
        if aim in line
    }
    assert said == {
        (floor, "text"): "2.00, met",
        (floor, "tool JSON"): "4.00, met",
        (floor, "82 recordings"): "5.00, missed",
        (raw, "text"): "10.00, met",
        (raw, "tool JSON"): "5.00, met",
        (raw, f"tool JSON, {FRAMED}"): "2.22, missed",
        (raw, "82 recordings"): "4.00, met",
        (linear, "tool JSON"): "3.20, missed",
    }


def test_the_explorer_is_judged_against_a_plain_search() -> None:
    assert ": 4.00, met (" in Explored("explorer", 9, 2.0, 8.0).verdict
    assert ": 7.00, missed (" in Explored("explorer", 9, 1.0, 7.0).verdict
    assert str(Explored("explorer", 2000, 2.0, 8.0)).endswith("4.0 x, 125,000 states a second")


def test_the_plain_search_has_as_much_to_do_as_the_explorer() -> None:
    known = known_ways()
    assert plain_search(known) == len(known) == 2424
    assert sum(map(len, known.values())) == 24_043
