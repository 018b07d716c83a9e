"""What an item of a Responses answer is: its kinds, its parts, which events bring its content.

Tables first; `openai_responses.py` is the grammar that uses them. Source: the types of the vendor's
Python SDK 3.57 and its streaming guide. An item type that is not here is kept as "other", with all
its fields.

An item is a message, some reasoning, a call, or something else. A message and reasoning have parts
(`content`, `summary`), each with a number. A call has one part, its input: JSON text or free text
that streams, or fields of the item that come whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import msgspec

from .dialect import word
from .events import Event, InputDelta, Kind, TextDelta, ThinkingDelta
from .payload import as_json, joined, same_json

__all__ = [
    "DELTAS",
    "DONES",
    "FORMS",
    "HOT",
    "MAKE",
    "OTHER",
    "PARTS",
    "PART_KIND",
    "PROGRESS",
    "RUNS",
    "USUAL",
    "Flow",
    "Form",
    "Item",
    "Part",
    "Shape",
    "decode_delta",
    "details",
    "draft_of",
    "escaped",
    "form_of",
    "given_input",
    "pair",
    "runs_at_provider",
    "same_content",
    "streamed",
]


class Form(msgspec.Struct, frozen=True):
    """What an item of one type becomes."""

    kind: Kind
    server: bool = False  #: whether the provider runs the call (`RUNS` where it depends)
    name: str = ""  #: of the tool; "" where the item names it
    input: str = ""  #: the field with the input's text
    free: bool = False  #: that text is no JSON
    fields: tuple[str, ...] = ()  #: or the fields that are the input, whole, by name


FORMS: dict[str, Form] = {
    "message": Form("text"),
    "reasoning": Form("thinking"),
    "function_call": Form("tool_call", input="arguments"),
    "custom_tool_call": Form("tool_call", input="input", free=True),
    "computer_call": Form("tool_call", name="computer", fields=("action", "actions")),
    "apply_patch_call": Form("tool_call", name="apply_patch", fields=("operation",)),
    "shell_call": Form("tool_call", name="shell", fields=("action",)),
    "local_shell_call": Form("tool_call", name="local_shell", fields=("action",)),
    "tool_search_call": Form("tool_call", name="tool_search", fields=("arguments",)),
    "mcp_call": Form("tool_call", True, input="arguments"),
    "web_search_call": Form("tool_call", True, "web_search", fields=("action", "arguments")),
    "file_search_call": Form("tool_call", True, "file_search", fields=("queries",)),
    "code_interpreter_call": Form("tool_call", True, "code_interpreter", fields=("code",)),
    "image_generation_call": Form(
        "tool_call",
        True,
        "image_generation",
        fields=("action", "revised_prompt", "size", "quality", "background", "output_format"),
    ),
    "program": Form("tool_call", True, "program", fields=("code",)),
}

#: Item types that are "other" and known: what a person must answer, results, state to send back.
OTHER = frozenset(
    {
        "additional_tools",
        "apply_patch_call_output",
        "compaction",
        "computer_call_output",
        "custom_tool_call_output",
        "function_call_output",
        "local_shell_call_output",
        "mcp_approval_request",
        "mcp_approval_response",
        "mcp_list_tools",
        "program_output",
        "shell_call_output",
        "tool_search_output",
    }
)

#: Item type -> the field that says who runs it, and when that is the provider.
RUNS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "shell_call": ("environment", lambda where: _type_of(where).startswith("container")),
    "tool_search_call": ("execution", lambda who: who == "server"),
}


class Flow(msgspec.Struct, frozen=True):
    """Where the content that an event brings belongs."""

    item: str  #: the item's type, where nothing has announced it
    group: str  #: "content" or "summary"; "input" of a call; "draft": a string inside its input
    field: str  #: of the `.done` event: the whole content
    index: str = ""  #: the field with the part's number
    part: str = ""  #: the part's type


_FLOWS: dict[str, Flow] = {
    "output_text": Flow("message", "content", "text", "content_index", "output_text"),
    "refusal": Flow("message", "content", "refusal", "content_index", "refusal"),
    "reasoning_text": Flow("reasoning", "content", "text", "content_index", "reasoning_text"),
    "reasoning_summary_text": Flow("reasoning", "summary", "text", "summary_index", "summary_text"),
    "function_call_arguments": Flow("function_call", "input", "arguments"),
    "custom_tool_call_input": Flow("custom_tool_call", "input", "input"),
    "mcp_call_arguments": Flow("mcp_call", "input", "arguments"),
    "code_interpreter_call_code": Flow("code_interpreter_call", "draft", "code"),
    "apply_patch_call_operation_diff": Flow("apply_patch_call", "draft", "diff"),
}

#: Event type -> the flow that it is a piece of; and that it ends, with the whole content.
DELTAS = {f"response.{name}.delta": flow for name, flow in _FLOWS.items()}
DONES = {f"response.{name}.done": flow for name, flow in _FLOWS.items()}

#: Events that begin and end a part -> (its group, the field with its number, its item's type).
PARTS: dict[str, tuple[str, str, str]] = {
    "response.content_part": ("content", "content_index", "message"),
    "response.reasoning_part": ("content", "content_index", "reasoning"),  # Bedrock's name
    "response.reasoning_summary_part": ("summary", "summary_index", "reasoning"),
}

#: Part type -> what it is; of another type, what its item is.
PART_KIND: dict[str, Kind] = {
    "output_text": "text",
    "refusal": "text",
    "reasoning_text": "thinking",
    "summary_text": "thinking",
}

#: Part types that an item's first segment has where nothing else is said.
USUAL = ("output_text", "summary_text")

MAKE: dict[Kind, Callable[[str, str], Event]] = {
    "text": TextDelta,
    "thinking": ThinkingDelta,
    "tool_call": InputDelta,
}

_STEPS: dict[str, tuple[str, ...]] = {
    "web_search_call": ("in_progress", "searching", "completed"),
    "file_search_call": ("in_progress", "searching", "completed"),
    "code_interpreter_call": ("in_progress", "interpreting", "completed"),
    "image_generation_call": ("in_progress", "generating", "completed"),
    "mcp_call": ("in_progress", "completed", "failed"),
    "mcp_list_tools": ("in_progress", "completed", "failed"),
    "shell_call_command": ("added", "delta"),
    "shell_call_output_content": ("delta", "done"),
    "compaction": ("compacting",),
}

#: Events that tell how far a hosted tool is; what it did comes whole, in its item.
PROGRESS = frozenset(f"response.{name}.{step}" for name, steps in _STEPS.items() for step in steps)


#: A shape of delta that is decoded at once.
Shape = type[msgspec.Struct]


class Part(msgspec.Struct):
    """A segment, and what is needed to hold it to its authorities."""

    segment: str
    kind: Kind
    type: str  #: the vendor's word for it
    key: tuple[str, int]  #: its group and its number in its item
    make: Callable[[str, str], Event]
    fragments: list[str] = []  # what streamed; msgspec gives each part its own list
    whole: str | None = None  #: the whole content, by the latest authority
    open: bool = True
    hot: tuple[Shape, int, int] | None = None  #: where the reader finds it at once
    event: str = ""  #: the event that brings its deltas, where it is found so
    item_id: str = ""  #: and its item's id
    citations: int = 0


class Item(msgspec.Struct):
    """One item of the answer's output."""

    index: int
    segment: str
    type: str
    form: Form
    server: bool
    own: Part  #: its first segment: there from the start, so that the order is the items' own
    id: str = ""
    name: str = ""
    call_id: str = ""
    status: str = ""
    done: bool = False  #: whether output_item.done came, or the terminal event closed it
    settled: bool = False  #: whether a whole version of the item came
    parts: dict[tuple[str, int], Part] = {}
    given: dict[str, Any] = {}  #: as it was announced
    draft: tuple[str, str] | None = None  #: the JSON around a string that streams
    drafting: bool = False
    commands: dict[int, str] = {}  #: of a shell: what streamed
    images: int = 0

    @property
    def client(self) -> bool:
        """Whether it is a call that the application would run."""
        return self.form.kind == "tool_call" and not self.server

    def is_new(self, name: str, value: Any) -> bool:
        """Whether a detail was not known when the item was announced."""
        return name != "phase" or self.given.get(name) != value

    def takes(self, flow: Flow) -> bool:
        """Whether content of that kind can belong to it."""
        if flow.group in ("input", "draft"):
            return self.type == flow.item
        return self.form.kind != "tool_call"

    def is_of(self, given: dict[str, Any]) -> bool:
        """Whether an item as stated again can be this one."""
        names = ("type", "id", "call_id", "name")
        mine = (self.type, self.id, self.call_id, self.form.name or self.name)
        theirs = tuple(word(given.get(name)) for name in names)
        return all(not a or not b or a == b for a, b in zip(mine, theirs, strict=True))


class _Delta(msgspec.Struct, gc=False, forbid_unknown_fields=True, kw_only=True):
    """Nine frames in ten are such a shape; decoding straight into it saves most of the time.

    Whatever does not fit (another event, an unknown field, a wrong type) takes the general way.
    """

    sequence_number: int | None = None
    item_id: str = ""
    output_index: int
    delta: str
    logprobs: tuple[Any, ...] = ()
    obfuscation: str = ""


class _Text(_Delta, tag="response.output_text.delta", kw_only=True):
    number: int = msgspec.field(name="content_index")


class _Reasoning(_Delta, tag="response.reasoning_text.delta", kw_only=True):
    number: int = msgspec.field(name="content_index")


class _Summary(_Delta, tag="response.reasoning_summary_text.delta", kw_only=True):
    number: int = msgspec.field(name="summary_index")


class _Arguments(_Delta, tag="response.function_call_arguments.delta"):
    number: ClassVar[int] = 0


class _Input(_Delta, tag="response.custom_tool_call_input.delta"):
    number: ClassVar[int] = 0


decode_delta = msgspec.json.Decoder(_Text | _Reasoning | _Summary | _Arguments | _Input).decode

#: Event type -> the shape that is decoded so.
HOT: dict[str, Shape] = {
    str(shape.__struct_config__.tag): shape
    for shape in (_Text, _Reasoning, _Summary, _Arguments, _Input)
}


def form_of(type: str) -> Form:
    """What an item of a type becomes."""
    return FORMS.get(type, Form("other"))


def runs_at_provider(type: str, item: dict[str, Any]) -> bool | None:
    """Whether the provider runs a call itself; None where that depends, and the item is silent."""
    if type not in RUNS:
        return form_of(type).server
    field, test = RUNS[type]
    return test(item[field]) if item.get(field) is not None else None


def given_input(form: Form, item: dict[str, Any]) -> str | None:
    """A call's whole input, as an item states it; None where it states none."""
    if form.input:
        given = item.get(form.input)
        return None if given is None else as_json(given)
    fields = {name: item[name] for name in form.fields if item.get(name) is not None}
    return as_json(fields) if fields else None


def draft_of(item: dict[str, Any]) -> tuple[str, str] | None:
    """The JSON before and after a string that streams inside a call's input."""
    type = item.get("type")
    if type == "code_interpreter_call":
        return '{"code":"', '"}'
    operation = item.get("operation")
    if type != "apply_patch_call" or not isinstance(operation, dict):
        return None
    rest = as_json({name: value for name, value in operation.items() if name != "diff"})
    return f'{{"operation":{rest[:-1]}{"," if len(rest) > 2 else ""}"diff":"', '"}}'


def escaped(text: str) -> str:
    """A text as it stands inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def same_content(part: Part, streamed: str, given: str, free: bool) -> bool:
    """Whether two versions of a part say the same: of a JSON input the value counts."""
    if streamed == given:
        return True
    return part.kind == "tool_call" and not free and same_json(streamed or "{}", given or "{}")


def streamed(part: Part) -> str:
    """What a part holds: by its authority, else what streamed."""
    return joined(part.fragments) if part.whole is None else part.whole


#: Fields of an item that have their own place already.
_ELSEWHERE = frozenset({"type", "status", "role", "content", "summary", "id", "name", "call_id"})


def details(form: Form, item: dict[str, Any]) -> dict[str, Any]:
    """What else an item holds: to show, or to send back in the next request."""
    if form.kind == "other":
        return {name: value for name, value in item.items() if name != "type"}
    shown = {*_ELSEWHERE, form.input, *form.fields}
    if form.kind == "thinking":
        shown.add("encrypted_content")
    return {n: value for n, value in item.items() if n not in shown and value not in (None, [])}


def pair(items: Iterable[Item], output: list[dict[str, Any]]) -> list[Item | None]:
    """For each item of the final snapshot, the one that streamed.

    They are joined by call id or item id; else by their place; else by their order among those of
    their type (some servers give every event another id, and leave items out of the snapshot).
    """
    free = {id(item): item for item in items}
    found: list[Item | None] = [None] * len(output)
    by_call = {item.call_id: item for item in free.values() if item.call_id}
    by_id = {item.id: item for item in free.values() if item.id}
    by_place = {item.index: item for item in free.values()}

    def take(place: int, item: Item | None) -> None:
        same = item is not None and item.type == output[place].get("type")
        if same and found[place] is None and id(item) in free:
            found[place] = free.pop(id(item))

    for place, given in enumerate(output):
        take(place, by_call.get(word(given.get("call_id"))))
        take(place, by_id.get(word(given.get("id"))))
    for place in range(len(output)):
        take(place, by_place.get(place))
    queues: dict[str, list[Item]] = {}
    for item in reversed(free.values()):
        queues.setdefault(item.type, []).append(item)
    for place, given in enumerate(output):
        queue = queues.get(word(given.get("type")))
        if found[place] is None and queue:
            take(place, queue.pop())
    return found


def _type_of(value: Any) -> str:
    return word(value.get("type")) if isinstance(value, dict) else ""
