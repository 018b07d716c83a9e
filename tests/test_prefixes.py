"""Every prefix of a tool's JSON is read as streamlab and as the real SDK would, and counted."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab import judge, synth
from streamlab.errors import UsageError
from streamlab.study.prefixes import MOST, lenient, prefixes, strict
from streamlab.study.sdk import ask_sdk

PIECES = ('{"invoice": ', '"INV-17"', ', "amount": 1', "00000", ', "currency": "EUR"}')
REQUIRED = ("invoice", "amount")

TABLE = """\
length  added last            strict   lenient        the value it reads
12      {"invoice":           refused  lacks fields   {}
20      "INV-17"              refused  lacks fields   {"invoice":"INV-17"}
33      , "amount": 1         refused  another value  {"invoice":"INV-17","amount":1}
38      00000                 refused  another value  {"invoice":"INV-17","amount":100000}
58      , "currency": "EUR"}  a value  the value      {"invoice":"INV-17","amount":100000,"currency":"EUR"}
2 other valid-looking values before the end"""  # noqa: E501


def test_each_fragment_of_a_payment_has_its_own_meaning() -> None:
    assert repr(prefixes(PIECES, REQUIRED)) == TABLE


def test_character_by_character_there_are_more_wrong_payments() -> None:
    table = prefixes("".join(PIECES), REQUIRED)
    assert [value["amount"] for value in table.meanings] == [
        1,
        10,
        100,
        1000,
        10000,
        100000,
        100000,
    ]
    assert "currency" not in table.meanings[5]
    assert table.meanings[6]["currency"] == "EUR"
    assert repr(table).endswith("\n6 other valid-looking values before the end")
    assert "\n1-19 " in repr(table), "what means the same is one line"


def test_the_lenient_reading_is_the_real_sdks() -> None:
    events = ask_sdk(synth.pay_invoice()).events
    deltas = [event for event in events if event.type == "input_json"]
    text = ""
    for event in deltas:
        text += event.partial_json
        assert lenient(text) == event.snapshot
    assert len(deltas) == 6


@pytest.mark.parametrize(
    ("text", "read", "loosely"),
    [
        ("", {}, {}),
        (" ", {}, None),
        ("{", None, {}),
        ('{"a": 1', None, {"a": 1}),
        ('{"a": -', None, {}),
        ('{"a": "x', None, {}),
        ('{"a": ["x", "y', None, {"a": ["x"]}),
        ('{"a": 1}', {"a": 1}, {"a": 1}),
        ('{"a": 1, "a": 2}', None, {"a": 2}),
        ('{"a": 1} and more', None, {"a": 1}),
        ('{"a": @', None, None),
        ("[1, 2]", None, None),
        ('{"a": "\ud83d"}', None, None),
    ],
    ids=repr,
)
def test_a_strict_and_a_lenient_reading(text: str, read: Any, loosely: Any) -> None:
    assert strict(text) == read
    assert lenient(text) == loosely


def test_the_strict_reading_is_what_a_turn_does_at_the_stop() -> None:
    for text in ("", '{"a": 1}', '{"a": 1', "[1]", '{"a": 1, "a": 2}'):
        call = judge(synth.answer([synth.ToolCall("any_tool", (text,))])).turn.calls[0]
        assert call.input == strict(text)


@given(st.dictionaries(st.text(max_size=4), st.integers() | st.text(max_size=4), min_size=1))
def test_only_the_whole_is_read_strictly(value: dict[str, Any]) -> None:
    rows = prefixes(json.dumps(value)).rows
    assert [row.strict for row in rows[:-1]] == [None] * (len(rows) - 1)
    assert (rows[-1].strict, rows[-1].verdict) == (value, "the value")
    assert all(row.verdict in ("lacks fields", "another value", "the value") for row in rows)


def test_true_is_not_one() -> None:
    table = prefixes(['{"a": [1', ", 2]}"])
    assert table.meanings == ({"a": [1]}, {"a": [1, 2]})
    assert [row.looks_valid for row in table.rows] == [True, True]
    assert prefixes(['{"a": true}']).rows[0].verdict == "the value"
    assert len(prefixes('{"a": 1.0}').meanings) == 2, "1 comes before 1.0"


@pytest.mark.parametrize(
    ("pieces", "said"),
    [
        ((), "nothing came"),
        (("oops",), "0 other valid-looking values before the end"),
        (('{"a": 1', ', "a": 2}'), "2 other valid-looking values before the end"),
    ],
    ids=["nothing", "no JSON", "a key twice"],
)
def test_an_input_that_is_no_json_means_nothing_at_its_end_either(
    pieces: tuple[str, ...], said: str
) -> None:
    table = prefixes(pieces)
    assert repr(table).splitlines()[-1] == said
    assert all(row.verdict != "the value" for row in table.rows)


def test_a_table_on_a_page_runs_nothing_that_a_stream_brought() -> None:
    html = prefixes(['{"a": "<script>', 'alert(1)</script>"}'])._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr>") == 3


def test_a_text_that_is_too_long_for_a_table_is_refused() -> None:
    with pytest.raises(UsageError, match=f"at most {MOST}"):
        prefixes("x" * (MOST + 1))


def test_a_long_text_is_refused_before_its_prefixes_are_made() -> None:
    text = "x" * 20_000  # its prefixes are 200 million characters
    tracemalloc.start()
    try:
        with pytest.raises(UsageError, match="20000 characters"):
            prefixes(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000
