"""The JSON inside a frame: strict, bounded, and no shape of error goes unseen."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.wire.payload import (
    MAX_DEPTH,
    NotJSON,
    compact,
    error_in,
    joined,
    key_twice,
    may_be_deep,
    parse,
)
from streamlab.wire.sse import Frame
from tests.streams_for_tests import any_text

HALF, OTHER_HALF = "\ud83d", "\udc0b"  # of one whale


def nested(depth: int, opening: str = "[", middle: str = "", closing: str = "]") -> str:
    return opening * depth + middle + closing * depth


@pytest.mark.parametrize(
    "text, value",
    [
        ("{}", {}),
        (' {"a": [1, 2.5, -0.0, true, null]} \n', {"a": [1, 2.5, -0.0, True, None]}),
        ('"\\ud83d\\udc0b"', "🐋"),
        ('"\\ud83d"', HALF),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("9" * 300, int("9" * 300)),
        ("1e-400", 0.0),
        ('"\u2028\u0085"', "\u2028\u0085"),
        (nested(MAX_DEPTH), json.loads(nested(MAX_DEPTH))),
    ],
    ids=["empty", "values", "pair", "half", "twice", "big int", "tiny", "separators", "deep"],
)
def test_json_is_read(text: str, value: Any) -> None:
    assert parse(text.encode()) == value
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"a":}',
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1} x',
        '{"a": 1}{"b": 2}',
        "NaN",
        '{"a": Infinity}',
        "-Infinity",
        "1e400",
        "01",
        "+1",
        "9" * 5000,
        '"\x01"',
        '"\\x41"',
        "\ufeff{}",
        "nul",
        nested(MAX_DEPTH + 1),
        nested(MAX_DEPTH + 1, '{"a":', "1", "}"),
        nested(990, '{"a":', "1", "}"),
        nested(100_000),
        "[" * 100_000,
    ],
    ids=lambda text: repr(text)[:24],
)
def test_what_is_not_json_is_refused_and_never_repaired(text: str) -> None:
    with pytest.raises(NotJSON):
        parse(text.encode())
    with pytest.raises(NotJSON):
        parse(text)


@given(
    depth=st.integers(MAX_DEPTH - 8, MAX_DEPTH + 12),
    levels=st.lists(
        st.sampled_from(
            ("[{}]", '{{"a": {}}}', "[[], {}, {{}}]", '["]", {}]', '{{"}}": {}, "": "["}}')
        ),
        min_size=1,
        max_size=4,
    ),
    core=st.sampled_from(("1", '"\\""', '"[{"', "[]", "[{},[[]],{}]", '"\\u005d"')),
)
def test_what_may_not_be_deep_is_not(depth: int, levels: list[str], core: str) -> None:
    text = core
    for number in range(depth):
        text = levels[number % len(levels)].format(text)
    if depth_of(json.loads(text)) > MAX_DEPTH:
        assert may_be_deep(text) and may_be_deep(text.encode())
        with pytest.raises(NotJSON, match="deep"):
            parse(text)
    else:
        assert parse(text.encode()) == json.loads(text)


def depth_of(value: Any) -> int:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict | list) + max(map(depth_of, inside), default=0)


def test_a_wide_value_is_not_a_deep_one() -> None:
    rows = [{"a": [n]} for n in range(MAX_DEPTH * 3)]
    assert parse(json.dumps(rows)) == rows


def test_brackets_in_a_string_nest_nothing() -> None:
    assert parse(json.dumps("[" * 1000)) == "[" * 1000


def test_invalid_utf8_becomes_the_replacement_character() -> None:
    assert parse(b'{"a": "\xff\xfe"}') == {"a": "\ufffd\ufffd"}


@pytest.mark.parametrize("text", [f'{{"a": "{HALF}"}}', '{"a": "\\ud83d"}', '{"\\udc0b": 1}'])
def test_half_a_character_may_be_shown_but_not_acted_on(text: str) -> None:
    parse(text)
    with pytest.raises(NotJSON, match="half a character"):
        parse(text, halves=False)


def test_a_whole_character_in_two_escapes_is_whole() -> None:
    assert parse('{"a": "\\ud83d\\udc0b"}', halves=False) == {"a": "🐋"}


@given(st.recursive(st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False)
                    | st.integers() | any_text, lambda inner: st.lists(inner)
                    | st.dictionaries(any_text, inner)))  # fmt: skip
def test_whatever_json_can_hold_comes_back(value: Any) -> None:
    assert parse(json.dumps(value)) == value


# --- Fragments --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces, text",
    [
        ([], ""),
        (["a", "", "b"], "ab"),
        (["é", "日"], "é日"),
        ([HALF, OTHER_HALF], "🐋"),
        ([HALF, "", OTHER_HALF + "!"], "🐋!"),
        ([HALF], HALF),
        ([OTHER_HALF, HALF], OTHER_HALF + HALF),
        ([HALF, HALF, OTHER_HALF], HALF + "🐋"),
    ],
    ids=ascii,
)
def test_fragments_join_and_two_halves_become_one_character(pieces: list[str], text: str) -> None:
    assert joined(pieces) == text


@given(st.lists(any_text))
def test_joining_loses_and_invents_nothing(pieces: list[str]) -> None:
    def units(text: str) -> bytes:
        return text.encode("utf-16-le", "surrogatepass")

    assert units(joined(pieces)) == b"".join(map(units, pieces))


# --- Errors -----------------------------------------------------------------------------------

LONG = "x" * 5000


@pytest.mark.parametrize(
    "event, payload, kind, message",
    [
        ("error", {"type": "error", "error": {"type": "a", "message": "m"}}, "a", "m"),
        ("", {"type": "error", "error": {"type": "a", "message": "m"}}, "a", "m"),
        ("", {"error": {"type": "a", "message": "m"}}, "a", "m"),
        ("", {"error": {"code": 429, "message": "m"}}, "429", "m"),
        ("", {"error": {"status": "UNAVAILABLE", "message": "m"}}, "UNAVAILABLE", "m"),
        ("", {"error": "m"}, "error", "m"),
        ("", {"type": "overloaded_error", "message": "m"}, "overloaded_error", "m"),
        ("error", {"type": "overloaded_error", "message": "m"}, "overloaded_error", "m"),
        ("error", {"message": "m"}, "error", "m"),
        ("error", {}, "error", "{}"),
        ("error", {"type": "error", "error": {}}, "error", '{"type":"error","error":{}}'),
        ("", {"first": 1, "error": {"message": "m"}}, "error", "m"),
        ("error", ["m"], "error", '["m"]'),
        ("error", "m", "error", '"m"'),
        ("error", None, "error", "null"),
        (
            "",
            {"object": "error", "message": "m", "type": "BadRequest", "code": 4},
            "BadRequest",
            "m",
        ),
        ("", {"detail": "m"}, "error", "m"),
        ("", {"detail": [{"msg": "m"}]}, "error", "[{'msg': 'm'}]"),
        ("", {"code": "invalid_key", "message": "m", "request_id": "r"}, "invalid_key", "m"),
        ("", {"msg": "m", "code": 1302, "success": False}, "1302", "m"),
        ("", {"error_code": 110, "error_msg": "m"}, "110", "m"),
        ("", {"status": "error", "message": "m"}, "error", "m"),
        ("", {"status": 403, "title": "Forbidden", "detail": "m"}, "403", "m"),
        ("", {"statusCode": 401, "message": "m"}, "401", "m"),
        ("", {"__type": "ThrottlingException", "message": "m"}, "ThrottlingException", "m"),
        ("", {"errors": [{"code": 7003, "message": "m"}], "success": False}, "7003", "m"),
        ("", {"errors": ["m"]}, "error", "m"),
        ("", {"choices": None, "base_resp": {"status_code": 8, "status_msg": "m"}}, "8", "m"),
        ("", {"error": {"detail": "m"}}, "error", "m"),
        ("", {"error": {"type": LONG, "message": LONG}}, LONG[:200], LONG[:2000]),
        ("", {"error": {"type": int("9" * 4000), "message": ["m"]}}, "9" * 200, "['m']"),
    ],
    ids=lambda value: str(value)[:40] or "unnamed",
)
def test_an_error_of_any_shape_is_an_error(
    event: str, payload: Any, kind: str, message: str
) -> None:
    frame = Frame(3, event, json.dumps(payload, separators=(",", ":")).encode(), 0, 9)
    error = error_in(payload, frame)
    assert error is not None
    assert (error.type, error.message, error.at) == (kind, message, 3)


@pytest.mark.parametrize(
    "event, payload",
    [
        ("", {}),
        ("message_stop", {"type": "message_stop"}),
        ("", {"error": None}),
        ("", {"error": ""}),
        ("", ["error"]),
        ("", "error"),
        ("", {"type": "error_free"}),
        ("", {"type": ["error"]}),
        ("", {"message": {"error": "inside"}}),
        ("", {"message": "still at work"}),
        ("", {"message": "still at work", "status": "running"}),
        ("", {"message": "done", "status": 200}),
        ("", {"message": "", "code": 4}),
        ("", {"message": "m", "code": 0}),
        ("", {"detail": ""}),
        ("", {"detail": "m", "step": 1}),
        ("", {"errors": []}),
        ("", {"choices": [], "message": "m", "code": 4}),
        ("", {"type": "response.note", "message": "m", "code": "x"}),
        ("", {"choices": [], "base_resp": {"status_code": 0, "status_msg": "success"}}),
    ],
    ids=repr,
)
def test_what_only_looks_like_an_error_is_none(event: str, payload: Any) -> None:
    assert error_in(payload, Frame(1, event, b"", 0, 0)) is None


#: JSON text in which keys may come twice, be hidden by an escape, or hold a colon.
keys = st.sampled_from(['"a"', '"b"', '"a:"', r'"\u0061"', r'"\u003a"', '"é"', r'"\ud83d"'])
texts = st.recursive(
    keys | st.sampled_from(["1", "1e5", "0.00001", "null", "12345678901234567890123"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | st.lists(st.tuples(keys, inner), max_size=4).map(
            lambda pairs: "{" + ", ".join(f"{key} :{value}" for key, value in pairs) + "}"
        )
    ),
)


@given(texts)
def test_a_key_that_comes_twice_is_found_with_the_value_at_hand_and_without(text: str) -> None:
    value = parse(text)
    assert key_twice(text, value) == key_twice(text) == key_twice(text.encode(), value)


@given(texts)
def test_a_value_that_is_written_down_again_is_the_same(text: str) -> None:
    value = parse(text)
    assert parse(compact(value)) == value
    assert " " not in compact(value)
