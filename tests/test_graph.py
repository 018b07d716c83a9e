"""The pictures of the explorer: all that can be reached, and a way that goes wrong, on lanes."""

from __future__ import annotations

import html
import re
from functools import cache

import pytest

from streamlab.analysis.figures.drawing import WIDTH, Drawing, wide
from streamlab.consumer.attempt import TERMINAL, State
from streamlab.study.explorer import Violation, explore
from streamlab.study.graph import WORDS, Graph, Node, draw, graph, timeline
from streamlab.study.ledger_guards import GUARDS


@cache
def whole() -> Graph:
    return graph()


def violation(name: str) -> Violation:
    found = explore(without=name).violation
    assert found is not None
    return found


def words(drawing: Drawing) -> list[tuple[float, float, float, str]]:
    """Every piece of text: from where to where, on which line, and what it says."""
    found = []
    for attributes, text in re.findall(r"<text ([^>]*)>(.*?)</text>", drawing.svg):
        given = dict(re.findall(r'([a-z-]+)="([^"]*)"', attributes))
        said, x = html.unescape(text), float(given["x"])
        room = wide(said, float(given.get("font-size", 11)))
        left = x - {"start": 0, "middle": room / 2, "end": room}[given.get("text-anchor", "start")]
        found.append((left, left + room, float(given["y"]), said))
    return found


def overlaps(drawing: Drawing) -> list[tuple[str, str]]:
    every = words(drawing)
    return [
        (one[3], other[3])
        for n, one in enumerate(every)
        for other in every[n + 1 :]
        if abs(one[2] - other[2]) < 9 and one[0] < other[1] and other[0] < one[1]
    ]


def test_the_merged_states_are_twelve_and_none_is_lost() -> None:
    assert len(whole().nodes) == 12 and len(whole().arrows) == 18
    assert sum(whole().nodes.values()) == explore().states


def test_what_can_be_reached_shows_what_the_ledger_promises() -> None:
    for node in whole().nodes:
        assert node.record == (node.row is State.COMMITTED)
        assert node.done or node.row is not State.COMMITTED
        assert not (node.done and node.row in TERMINAL - {State.COMMITTED})
    leaving = {arrow.start.row for arrow in whole().arrows}
    assert leaving == {node.row for node in whole().nodes} - TERMINAL


def test_an_effect_happens_only_once_the_commit_has_begun() -> None:
    happens = {a.start.row for a in whole().arrows if a.end.done and not a.start.done}
    assert happens == {State.COMMITTING, State.RECONCILING}


def test_every_arrow_has_words_and_every_word_is_used() -> None:
    assert {word for arrow in whole().arrows for word in arrow.words} == set(WORDS.values())


def test_a_smaller_depth_has_a_smaller_graph() -> None:
    small = graph(5)
    assert 0 < len(small.nodes) < len(whole().nodes)
    assert "<svg" in draw(small).svg


def test_the_picture_shows_every_node_and_says_the_same_in_words() -> None:
    drawing = draw(whole())
    said = [text for *_, text in words(drawing)]
    for node, many in whole().nodes.items():
        assert node.row in said and f"{many:,} states" in said
        assert f"{node.row} ({node.effect})" in drawing.caption
    for arrow in whole().arrows:
        assert " or ".join(arrow.words) in drawing.caption
    assert drawing.caption.startswith("2,424 states are 12 here.")
    assert repr(drawing) == drawing.caption


def test_a_picture_is_the_same_in_every_run() -> None:
    assert draw().svg == draw(graph()).svg
    name = "a request carries a key"
    assert timeline(violation(name)).svg == timeline(violation(name)).svg


def test_no_word_of_the_graph_lies_on_another_or_leaves_the_paper() -> None:
    drawing = draw(whole())
    assert overlaps(drawing) == []
    assert all(left >= 0 and right <= WIDTH for left, right, *_ in words(drawing))


@pytest.mark.parametrize("name", GUARDS)
def test_a_timeline_shows_each_step_who_takes_it_and_where_it_goes_wrong(name: str) -> None:
    found = violation(name)
    drawing = timeline(found)
    said = [text for *_, text in words(drawing)]
    for step in found.steps:
        assert step.says in said
    assert [text for text in said if text.startswith("\N{MULTIPLICATION X}")] == [
        f"\N{MULTIPLICATION X} {found.wrong}"
    ]
    assert set(" ".join(found.who).split()) <= set(" ".join(said).split())
    assert found.steps[found.wrong - 1].after in said
    assert drawing.caption == repr(found)
    assert overlaps(drawing) == []
    assert all(left >= 0 and right <= WIDTH for left, right, *_ in words(drawing))


def test_a_timeline_says_how_often_it_was_done() -> None:
    said = [text for *_, text in words(timeline(violation("a request carries a key")))]
    assert "once" in said and "twice" in said
    assert "once" not in [
        text for *_, text in words(timeline(violation("no answer is not success")))
    ]


def test_a_node_says_what_became_of_the_effect() -> None:
    assert Node(State.COMMITTING, False, False).effect == "not done"
    assert Node(State.COMMITTING, True, False).effect == "done, no record"
    assert Node(State.COMMITTED, True, True).effect == "done, on record"
