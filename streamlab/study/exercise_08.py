"""Lesson 08's exercise: the calls of a Chat stream, from the entries of its `tool_calls`.

An entry has an `index`, and perhaps an `id`, a name and a piece of the arguments. The cases are
what real servers do with these four: say them once or each time, leave them out, or use an index
again. Each wrong answer is a rule that works on most streams.

Read next: `questions.py`, which checks an answer; `../wire/openai_chat_calls.py`, for all of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlab.study.tasks import Case, Exercise, Wrong

__all__ = ["CASES", "EXERCISES", "join"]

JSON = dict[str, Any]
Call = tuple[str, str, str]


def join(entries: list[JSON]) -> list[Call]:
    """The solution: the index joins, and another id on it is another call."""
    calls: list[list[str]] = []
    at: dict[int, list[str]] = {}
    for entry in entries:
        index, id, function = entry["index"], entry.get("id"), entry["function"]
        if index not in at or (id and id != at[index][0]):
            at[index] = [id or "", function.get("name") or "", ""]
            calls.append(at[index])
        at[index][2] += function.get("arguments") or ""
    return [(id, name, text) for id, name, text in calls]


# --- The cases ------------------------------------------------------------------------------------


def _entry(index: int, id: Any = ..., name: Any = ..., given: Any = ...) -> JSON:
    """An entry; what is left out is not in it."""
    function = {key: v for key, v in (("name", name), ("arguments", given)) if v is not ...}
    return {"index": index, **({} if id is ... else {"id": id}), "function": function}


ONE, AFTER, MIXED = "one call", "one call after the other", "two calls side by side"
EQUAL, ORDER = "two equal fragments", "index 1 begins first"
USED, SAME = "another id on the same index", "two calls that differ in their ids alone"
AGAIN, EMPTY, NULL = (
    "id and name in each entry",
    "empty id and name later",
    "null id and name later",
)
NONE = "no arguments at all"

A, B = '{"n": 1}', '{"n": 2}'

#: (name, entries, the calls, what is said to who gets it wrong)
CASES: tuple[tuple[str, list[JSON], list[Call], str], ...] = (
    (
        ONE,
        [_entry(0, "a", "f", ""), _entry(0, given='{"n"'), _entry(0, given=": 1}")],
        [("a", "f", A)],
        "The first entry brings id and name; the others only add to the arguments. Each call is a "
        "tuple, and all of them are in a list.",
    ),
    (
        AFTER,
        [_entry(0, "a", "f", A), _entry(1, "b", "g", B)],
        [("a", "f", A), ("b", "g", B)],
        "Two indexes are two calls.",
    ),
    (
        MIXED,
        [
            _entry(0, "a", "f", '{"n"'),
            _entry(1, "b", "f", '{"n"'),
            _entry(0, given=": 1}"),
            _entry(1, given=": 2}"),
        ],
        [("a", "f", A), ("b", "f", B)],
        "The index says whose it is, whichever call began last.",
    ),
    (
        EQUAL,
        [
            _entry(0, "a", "f", "[1"),
            _entry(0, given="0"),
            _entry(0, given="0"),
            _entry(0, given="]"),
        ],
        [("a", "f", "[100]")],
        "Two fragments may be equal and both be meant. Only id and name are not said twice.",
    ),
    (
        ORDER,
        [_entry(1, "b", "g", B), _entry(0, "a", "f", A)],
        [("b", "g", B), ("a", "f", A)],
        "The calls are wanted in the order in which they begin; an index is a name, and no place.",
    ),
    (
        USED,
        [_entry(0, "a", "f", A), _entry(0, "b", "g", B)],
        [("a", "f", A), ("b", "g", B)],
        "Some servers number every call 0. Another id is another call, and the first one stays.",
    ),
    (
        SAME,
        [_entry(0, "a", "f", A), _entry(0, "b", "f", A)],
        [("a", "f", A), ("b", "f", A)],
        "Equal names and equal arguments make no repetition: the ids differ, so it is two calls.",
    ),
    (
        AGAIN,
        [_entry(0, "a", "f", '{"n"'), _entry(0, "a", "f", ": 1}")],
        [("a", "f", A)],
        "Some servers say id and name each time. The same id on the same index is the same call.",
    ),
    (
        EMPTY,
        [_entry(0, "a", "f", '{"n"'), _entry(0, "", "", ": 1}")],
        [("a", "f", A)],
        'An empty id is no id: `""` says nothing new.',
    ),
    (
        NULL,
        [_entry(0, "a", "f", None), _entry(0, None, None, A)],
        [("a", "f", A)],
        "Any of the three may be null, which says nothing: `or` helps, a default of `get` doesn't.",
    ),
    (
        NONE,
        [_entry(0, "a", "f")],
        [("a", "f", "")],
        "A tool may need nothing, and some servers then leave the arguments out. It is a call.",
    ),
)


def _cases() -> tuple[Case, ...]:
    return tuple(Case(name, (given,), calls, why) for name, given, calls, why in CASES)


# --- Known mistakes -------------------------------------------------------------------------------

Key = Callable[[JSON, list[list[str]]], Any]


def _joined(
    key: Key = lambda entry, calls: entry["index"],
    begins: Callable[[str, str], bool] = lambda old, new: bool(new) and new != old,
    keep: bool = True,
    add: Callable[[str, str], str] = lambda old, new: old,
    append: Callable[[str, str], str] = lambda text, piece: text + piece,
) -> Callable[[list[JSON]], list[Call]]:
    """The solution with one thing changed: what joins, what begins a call, what is repeated."""

    def answer(entries: list[JSON]) -> list[Call]:
        calls: list[list[str]] = []
        at: dict[Any, list[str]] = {}
        for entry in entries:
            id, function = entry.get("id") or "", entry["function"]
            name = function.get("name") or ""
            place = key(entry, calls)
            if place not in at or begins(at[place][0], id):
                if place in at and not keep:
                    calls.remove(at[place])
                at[place] = [id, name, ""]
                calls.append(at[place])
            else:
                at[place][:2] = [add(at[place][0], id), add(at[place][1], name)]
            at[place][2] = append(at[place][2], function.get("arguments") or "")
        return [(id, name, text) for id, name, text in calls]

    return answer


def _newest(entry: JSON, calls: list[list[str]]) -> int:
    return len(calls) if entry.get("id") else len(calls) - 1


def _by_name(entries: list[JSON]) -> list[Call]:
    """A fragment without a name goes to the name that came last."""
    texts: dict[str, list[str]] = {}
    name = ""
    for entry in entries:
        name = entry["function"].get("name") or name
        call = texts.setdefault(name, [entry.get("id") or "", name, ""])
        call[2] += entry["function"].get("arguments") or ""
    return [(id, name, text) for id, name, text in texts.values()]


def _sorted(entries: list[JSON]) -> list[Call]:
    return join(sorted(entries, key=lambda entry: int(entry["index"])))


def _different(entries: list[JSON]) -> list[Call]:
    return list({(name, text): (id, name, text) for id, name, text in join(entries)}.values())


def _null_added(entries: list[JSON]) -> list[Call]:
    """The solution with a default of `get`, which a null gets past."""
    calls: list[list[str]] = []
    at: dict[int, list[str]] = {}
    for entry in entries:
        index, id, function = entry["index"], entry.get("id"), entry["function"]
        if index not in at or (id and id != at[index][0]):
            at[index] = [id or "", function.get("name", ""), ""]
            calls.append(at[index])
        at[index][2] += function.get("arguments", "")
    return [(id, name, text) for id, name, text in calls]


WRONG = (
    Wrong("it returns nothing", lambda entries: None, ONE),
    Wrong("every entry is a call", _joined(key=lambda entry, calls: len(calls)), ONE),
    Wrong("an empty id is another id", _joined(begins=lambda old, new: new != old), ONE),
    Wrong("append to the call that began last", _joined(key=_newest), MIXED),
    Wrong("a call is known by its name", _by_name, MIXED),
    Wrong(
        "an equal fragment is a repetition",
        _joined(append=lambda text, new: text if text.endswith(new) else text + new),
        EQUAL,
    ),
    Wrong("sorted by index", _sorted, ORDER),
    Wrong("the index alone joins", _joined(begins=lambda old, new: False), USED),
    Wrong("a new id takes the place of the call", _joined(keep=False), USED),
    Wrong("equal calls are one", _different, SAME),
    Wrong("any id begins a call", _joined(begins=lambda old, new: bool(new)), AGAIN),
    Wrong("id and name are appended too", _joined(add=lambda old, new: old + new), AGAIN),
    Wrong("the last name counts, if empty too", _joined(add=lambda old, new: new), ONE),
    Wrong("a null is added", _null_added, NULL),
    Wrong(
        "what has no arguments is no call",
        lambda entries: [call for call in join(entries) if call[2]],
        NONE,
    ),
)

EXERCISES = (Exercise("08-ex", _cases, join, WRONG),)
