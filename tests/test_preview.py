"""A preview of half a JSON text is for eyes: it grows, it never guesses, and nothing can use it."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamlab.consumer.preview import (
    ELLIPSIS,
    MAX_FIELDS,
    MAX_NAME,
    MAX_SHOWN,
    MAX_TEXT,
    Field,
    preview,
)

WHOLE = '{"invoice": "INV-17", "amount": 100000, "to": [{"bic": "]}"}], "urgent": true}'

VALUES: Any = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # what the names and strings of an input are made of, and what could be taken for its grammar
    | st.text(st.sampled_from('{}[]",:\\ \n…aé\N{ROCKET}'), max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(max_size=8), VALUES, max_size=5)
JSON_TEXTS = st.builds(
    lambda value, ascii, indent: json.dumps(value, ensure_ascii=ascii, indent=indent),
    OBJECTS,
    st.booleans(),
    st.sampled_from((None, 0, 2)),
)
#: Any text at all, and texts that are nearly an object.
TEXTS = st.text() | st.text(st.sampled_from('{}[]",:\\ -+.eE0123tfnrualse')).map('{"a":'.__add__)


def shown(text: str) -> list[str]:
    return [str(field) for field in preview(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("{", []),
        ('{"amou', []),
        ('{"amount"', []),
        ('{"amount":', ["amount: …"]),
        ('{"amount": 1', ["amount: 1…"]),
        ('{"amount": 1 ', ["amount: 1"]),
        ('{"amount": -', ["amount: -…"]),
        ('{"amount": 1.', ["amount: 1.…"]),
        ('{"amount": 100000}', ["amount: 100000"]),
        ('{"urgent": tr', ["urgent: tr…"]),
        ('{"label": "Ready for rev', ['label: "Ready for rev…']),
        ('{"label": "a \\"', ['label: "a \\"…']),
        ('{"label": "a \\', ['label: "a …']),
        ('{"label": "\\u00e', ['label: "\\u00e…']),
        ('{"to": [{"bic": "]}"', ['to: [{"bic": "]}"…']),
        ('{"to": [{"bic": "]}"}]', ['to: [{"bic": "]}"}]']),
        ('{\n  "a": 1,\n  "b": 2\n}', ["a: 1", "b: 2"]),
        ('{"a": 1, "a": 100000}', ["a: 1", "a: 100000"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_field_is_shown_as_it_was_written(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hello", []),
        ("[1, 2]", []),
        ("{,", []),
        ('{"a" 1', []),
        ('{"a"::1}', ["a: …"]),
        ('{"a": @}', ["a: …"]),
        ('{"a": }', ["a: …"]),
        ('{"a": NaN, "b": 1}', ["a: NaN…"]),
        ('{"a": 01, "b": 1}', ["a: 01…"]),
        ('{"a": 1 "b": 2}', ["a: 1"]),
        ('{"a": [1}, "b": 2}', ["a: [1…"]),
        ('{"a": 1} {"b": 2}', ["a: 1"]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_json_ends_the_preview(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


def test_a_field_prints_as_a_card_shows_it() -> None:
    assert str(Field("amount", "1…", False)) == "amount: 1…"


@given(TEXTS)
@example('{"a": "\ud83d')
@example('{"a":' + "[" * 5000)
def test_any_text_has_a_preview_and_it_is_nothing_but_text(text: str) -> None:
    for field in preview(text):
        assert type(field.name) is type(field.shown) is str
        assert field.whole or field.shown.endswith(ELLIPSIS)


@given(JSON_TEXTS)
def test_a_whole_object_is_shown_whole(text: str) -> None:
    fields = preview(text)
    assert all(field.whole for field in fields)
    pairs = json.loads(text, object_pairs_hook=list)[:MAX_FIELDS]
    read = [(json.loads(f'"{f.name}"'), f.shown) for f in fields]
    for (name, value), (name_shown, value_shown) in zip(pairs, read, strict=True):
        assert name == name_shown
        if len(value_shown) <= MAX_SHOWN:
            assert json.loads(value_shown, object_pairs_hook=list) == value


@given(JSON_TEXTS, st.data())
def test_a_prefix_shows_a_prefix_of_what_the_whole_shows(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    early, late = preview(text[:cut]), preview(text)
    assert len(early) <= len(late)
    *settled, newest = early or [None]
    assert settled == list(late[: len(settled)])
    if newest is not None:
        end = late[len(settled)]
        assert newest.name == end.name
        assert end.shown.startswith(newest.shown.removesuffix(ELLIPSIS))


@given(OBJECTS, st.text(max_size=5), st.integers() | st.floats(0, 9e9))
def test_a_number_at_the_end_of_the_text_is_never_called_whole(
    before: dict[str, Any], name: str, number: float
) -> None:
    before = dict(list(before.items())[:3])
    text = json.dumps({**before, name + "x" * 9: number})[:-1]
    last = preview(text)[-1]
    assert not last.whole
    assert last.shown == f"{json.dumps(number)}{ELLIPSIS}"
    assert preview(text + "}")[-1].whole


@given(JSON_TEXTS, st.data())
def test_what_is_not_whole_can_be_read_as_no_value(text: str, data: st.DataObject) -> None:
    """Whoever tries to use an open field is stopped by its ellipsis."""
    cut = data.draw(st.integers(0, len(text)))
    for field in preview(text[:cut]):
        if not field.whole:
            with pytest.raises(ValueError):
                json.loads(field.shown)


# --- Bounds ---------------------------------------------------------------------------------------


def test_no_more_is_shown_than_a_card_can_hold() -> None:
    many = json.dumps({f"field {n}": n for n in range(MAX_FIELDS + 5)})
    assert [field.name for field in preview(many)] == [f"field {n}" for n in range(MAX_FIELDS)]
    (long,) = preview(json.dumps({"n" * 999: "v" * 999}))
    assert long == Field("n" * MAX_NAME + ELLIPSIS, '"' + "v" * (MAX_SHOWN - 1) + ELLIPSIS, True)


def test_what_stands_behind_too_much_text_is_not_looked_for() -> None:
    text = json.dumps({"long": "v" * MAX_TEXT, "behind": 1})
    (field,) = preview(text)
    assert (field.name, field.whole) == ("long", False)
    near = json.dumps({"long": "v" * (MAX_TEXT - 40), "near": 1}) + "x" * 99
    assert [field.name for field in preview(near)] == ["long", "near"]


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "' + "v" * MAX_TEXT,
        '{"a": "' + '\\"' * MAX_TEXT,
        '{"a": "' + "\\" * MAX_TEXT,
        '{"a": ' + "[" * MAX_TEXT,
        '{"a": [' + '"",' * MAX_TEXT,
        '{"a": [' + '"[' * MAX_TEXT,
        '{"a": ' + "1" * MAX_TEXT,
        '{"a": ' + "1e" * MAX_TEXT,
        '{"a":' + " " * MAX_TEXT,
        '{"' + "n" * MAX_TEXT,
        " " * MAX_TEXT,
        '{"a":1,' * MAX_TEXT,
    ],
    ids=lambda text: text[:12],
)
def test_a_look_takes_time_in_proportion_to_the_text(text: str) -> None:
    """A hundred thousand characters: what is quadratic would take minutes, not a second."""
    start = time.perf_counter()
    preview(text)
    assert time.perf_counter() - start < 2
