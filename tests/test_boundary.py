"""The byte-boundary explorer without a browser: its table, its traits, and what stands still."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamlab.errors import UsageError
from streamlab.study.boundaries import (
    DELIVERIES,
    STREAM,
    deliver,
    expected,
    failing,
    outcome,
    shown,
    sse_decoder,
    units,
    where,
)
from streamlab.study.naive_readers import NAIVE, Reader
from streamlab.widgets import boundary
from streamlab.widgets.boundary import MOST, BoundaryExplorer

FOLDER = Path(boundary.__file__).parent
LIVE = "application/vnd.jupyter.widget-view+json"
HOSTILE = '<img src=x onerror="alert(1)"> & \x1b[31m \u202e'
TABLE = BoundaryExplorer().table

each_delivery = pytest.mark.parametrize("delivery", DELIVERIES)


# --- The table ------------------------------------------------------------------------------------


@each_delivery
@pytest.mark.parametrize("reader", [*NAIVE, sse_decoder], ids=lambda reader: reader.__name__)
def test_the_table_says_what_the_readers_give(reader: Reader, delivery: str) -> None:
    rows = {row["name"]: row for row in (*TABLE["readers"], TABLE["ours"])}
    found = rows[reader.__name__]["outcomes"][list(DELIVERIES).index(delivery)]
    assert len(found["at"]) == (1 if delivery == "byte by byte" else len(STREAM))
    for cut, number in enumerate(found["at"]):
        came = outcome(reader, deliver(STREAM, cut, delivery))
        assert found["different"][number] == {
            "events": [shown(event) for event in came.events],
            "error": shown(came.error),
            "right": came == expected(STREAM),
        }
    wrong = [cut for cut, n in enumerate(found["at"]) if cut and not found["different"][n]["right"]]
    if delivery != "byte by byte":
        assert tuple(wrong) == failing(reader, delivery=delivery)


def test_the_table_shows_every_byte_once_and_says_where_each_cut_is() -> None:
    assert " ".join(hexes for _, _, hexes in TABLE["units"]) == STREAM.hex(" ")
    assert [sign for _, sign, _ in TABLE["units"]] == [unit.sign for unit in units(STREAM)]
    assert TABLE["where"] == [where(STREAM, cut) for cut in range(len(STREAM))]
    assert TABLE["deliveries"][0]["ends"] == [23, 36, 79, 96]
    assert TABLE["deliveries"][1]["ends"] == [96]
    assert TABLE["deliveries"][2]["ends"] == list(range(1, 97))


def test_the_table_is_sent_once_and_is_small() -> None:
    widget = BoundaryExplorer()
    sent: list[str] = []
    widget.observe(lambda change: sent.append(change["name"]))
    for cut in (5, 9):
        widget.goto(cut)
    assert sent == ["cut", "cut"]
    assert len(json.dumps(widget.table)) < 60_000


def test_a_reader_shows_its_code() -> None:
    assert "codecs.iterdecode(reads" in TABLE["readers"][5]["code"]
    assert TABLE["readers"][5]["says"].endswith("read by read.")


def test_a_reader_of_ones_own_comes_first() -> None:
    def mine(reads: Sequence[bytes]) -> list[str]:
        return ["always this"]

    first, *others = BoundaryExplorer(mine).table["readers"]
    assert (first["name"], len(others)) == ("mine", len(NAIVE))
    assert first["outcomes"][0]["different"] == [
        {"events": ["always this"], "error": "", "right": False}
    ]


def test_a_reader_without_a_name_or_source_is_shown_too() -> None:
    class Callable_:
        def __call__(self, reads: Sequence[bytes]) -> list[str]:
            return sse_decoder(reads)

    widget = BoundaryExplorer(Callable_())
    assert widget.table["readers"][0]["name"] == "a reader"
    assert widget.table["readers"][0]["code"] == ""


# --- Traits ---------------------------------------------------------------------------------------


def test_it_opens_without_a_cut_on_the_reader_of_the_question() -> None:
    widget = BoundaryExplorer()
    assert widget.table["readers"][widget.reader]["name"] == "decode_each_read"
    assert (widget.delivery, widget.cut) == (0, 0)


def test_it_opens_on_a_reader_of_ones_own() -> None:
    widget = BoundaryExplorer(sse_decoder)
    assert (widget.reader, widget.table["readers"][0]["name"]) == (0, "sse_decoder")


@pytest.mark.parametrize(
    ("trait", "sent", "kept"),
    [
        ("cut", 95, 95),
        ("cut", 96, 95),
        ("cut", -1, 0),
        ("reader", 99, len(NAIVE) - 1),
        ("reader", -5, 0),
        ("delivery", 3, 2),
    ],
)
def test_what_a_page_sends_stays_within_the_table(trait: str, sent: int, kept: int) -> None:
    widget = BoundaryExplorer()
    widget.set_state({trait: sent})
    assert getattr(widget, trait) == kept


@pytest.mark.parametrize("cut", [-1, 96])
def test_a_place_outside_is_refused(cut: int) -> None:
    with pytest.raises(UsageError, match=f"cut={cut}: this stream can be cut"):
        BoundaryExplorer().goto(cut)


@pytest.mark.parametrize("size", [0, MOST + 1])
def test_a_stream_of_no_bytes_or_too_many_is_refused(size: int) -> None:
    with pytest.raises(UsageError, match=f"a stream of {size} bytes; this view takes 1 to 400"):
        BoundaryExplorer(stream=b"a" * size)


def test_a_stream_of_one_byte_has_no_place() -> None:
    widget = BoundaryExplorer(stream=b"a")
    widget.set_state({"cut": 1})
    assert widget.cut == 0
    assert "1 byte, 0 places" in repr(widget)


# --- Standing still -------------------------------------------------------------------------------


def test_what_stands_still_has_the_counts_of_every_reader() -> None:
    data, _ = BoundaryExplorer()._repr_mimebundle_()
    assert data.keys() == {"text/plain", "text/html", LIVE}
    lines = data["text/plain"].splitlines()
    assert lines[0].startswith("BoundaryExplorer: 96 bytes, 95 places")
    for reader, line in zip((*NAIVE, sse_decoder), lines[2:], strict=True):
        count = f"{len(failing(reader))} of 95"
        assert line.split()[0] == reader.__name__
        assert count in line
        assert f"<td>{reader.__name__}</td><td>{count}" in data["text/html"]


def test_what_stands_still_is_the_same_every_time_wherever_one_stands() -> None:
    first, second = BoundaryExplorer(), BoundaryExplorer()
    second.set_state({"cut": 12, "reader": 3, "delivery": 1})
    assert repr(first) == repr(second)
    assert "0x" not in repr(first)
    assert first._repr_mimebundle_()[0]["text/html"] == second._repr_mimebundle_()[0]["text/html"]


def test_hostile_text_is_escaped_and_freed_of_what_nobody_sees() -> None:
    data, _ = BoundaryExplorer(stream=f"data: {HOSTILE}\n\n".encode())._repr_mimebundle_()
    assert "<img" not in data["text/html"]
    assert "\x1b" not in data["text/html"] + data["text/plain"]
    assert "\u202e" not in data["text/html"]
    signs = html.unescape(data["text/html"]).replace("␣", " ")
    assert '<img src=x onerror="alert(1)"> & ⟨1B⟩[31m ⟨202E⟩⟨LF⟩⟨LF⟩' in signs


# --- The page -------------------------------------------------------------------------------------


def test_the_view_builds_no_markup_and_asks_no_network() -> None:
    script = (FOLDER / "boundary.js").read_text(encoding="utf-8")
    for banned in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "fetch(", "http"):
        assert banned not in script
    assert len(script.splitlines()) <= 220


def test_the_view_asks_its_model_for_nothing_but_the_five_that_a_saved_page_has() -> None:
    script = (FOLDER / "boundary.js").read_text(encoding="utf-8")
    assert set(re.findall(r"model\.(\w+)", script)) == {"get", "set", "on", "off", "save_changes"}


def test_every_colour_has_a_way_out_where_there_is_no_jupyter() -> None:
    style = (FOLDER / "boundary.css").read_text(encoding="utf-8")
    assert not re.findall(r"var\(--jp-[\w-]+\)", style)
    assert "url(" not in style and "@import" not in style
