"""The fixtures of the wires that are not Claude's are what the generator writes, file by file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streamlab.analysis.judge import judge
from streamlab.streams import faults, recording, synth
from streamlab.streams.parts import Style, Text, ToolCall
from streamlab.streams.recording import Recording

FOLDER = Path(__file__).parents[1] / "fixtures"

#: A file of more bytes than this is no small example.
MOST = 12_000


def token_limit(wire: str) -> Recording:
    """A call whose JSON is cut short by the token limit."""
    text = Text(("I'll mark", " W-7 as", " ready", " for review."))
    call = ToolCall("change_label", ('{"item"', ': "W', '-7"', ', "label": ', '"Ready'))
    return synth.answer([text, call], "max_tokens", wire=wire, note="cut by the token limit")


def limit_by_path() -> Recording:
    """A call by path that is left open: its last fragment and its end never came."""
    style = Style(arguments="path", finish="own")
    limited = synth.change_label(wire="gemini", style=style, stop_reason="max_tokens")
    return faults.skip(faults.skip(limited, 8), 8)


BY_PATH = Style(arguments="path")
ARRAY = Style(form="array")
CHAT, RESPONSES, GEMINI = "openai-chat", "openai-responses", "gemini"

#: Wire, name -> the recording, and the forms in which it is kept.
FIXTURES: dict[tuple[str, str], tuple[Recording, tuple[str, ...]]] = {
    (CHAT, "greeting"): (synth.greeting(wire=CHAT), (".sse",)),
    (CHAT, "change_label"): (synth.change_label(wire=CHAT), (".sse", ".stream.jsonl")),
    (CHAT, "story"): (synth.story(CHAT), (".sse",)),
    (CHAT, "token_limit"): (token_limit(CHAT), (".sse",)),
    (CHAT, "pay_invoice_cut"): (faults.cut(synth.pay_invoice(wire=CHAT), after=7), (".sse",)),
    (RESPONSES, "greeting"): (synth.greeting(wire=RESPONSES), (".sse",)),
    (RESPONSES, "change_label"): (
        synth.change_label(wire=RESPONSES),
        (".sse", ".jsonl", ".stream.jsonl"),
    ),
    (RESPONSES, "story"): (synth.story(RESPONSES), (".sse",)),
    (RESPONSES, "token_limit"): (token_limit(RESPONSES), (".sse",)),
    (RESPONSES, "pay_invoice_cut"): (
        faults.cut(synth.pay_invoice(wire=RESPONSES), after=13),
        (".sse",),
    ),
    (GEMINI, "greeting"): (synth.greeting(wire=GEMINI), (".sse",)),
    (GEMINI, "change_label"): (
        synth.change_label(wire=GEMINI),
        (".sse", ".jsonl", ".stream.jsonl"),
    ),
    (GEMINI, "change_label_array"): (synth.change_label(wire=GEMINI, style=ARRAY), (".txt",)),
    (GEMINI, "story"): (synth.story(GEMINI), (".sse",)),
    (GEMINI, "token_limit"): (limit_by_path(), (".sse",)),
    (GEMINI, "pay_invoice_cut"): (
        faults.cut(synth.pay_invoice(wire=GEMINI, style=BY_PATH), after=5),
        (".sse",),
    ),
}

FILES = {
    f"{wire}/{name}{form}": source
    for (wire, name), (source, forms) in FIXTURES.items()
    for form in forms
}
wires = pytest.mark.parametrize("wire", [CHAT, RESPONSES, GEMINI])


@pytest.mark.parametrize("name", FILES)
def test_fixtures_are_what_the_generator_writes(
    name: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kept = FOLDER / name
    recording.write(FILES[name], tmp_path / kept.name)
    new = (tmp_path / kept.name).read_bytes()
    if pytestconfig.getoption("--update-golden"):
        kept.parent.mkdir(exist_ok=True)
        kept.write_bytes(new)
    assert kept.read_bytes() == new, f"{kept} is not what the generator writes (--update-golden)"


@pytest.mark.parametrize("name", FILES)
def test_a_fixture_is_recognised_and_judged_as_its_recording(name: str) -> None:
    kept, source = judge(recording.read(FOLDER / name)), FILES[name]
    assert kept.wire == source.wire
    assert kept.state == judge(source).state
    assert kept.turn.segments == judge(source).turn.segments or name.endswith(".jsonl")


@pytest.mark.parametrize("name", FILES)
def test_a_fixture_is_small(name: str) -> None:
    assert (FOLDER / name).stat().st_size < MOST


@wires
def test_every_fixture_has_its_row_and_there_is_no_other(wire: str) -> None:
    table = (FOLDER / "README.md").read_text(encoding="utf-8").split(f"## {wire}\n")[1]
    rows = [row.split(" | ") for row in re.split("\n## ", table)[0].splitlines()]
    states = {row[0].strip("| `"): row[-1].strip("| ") for row in rows if row[0].startswith("| `")}
    judged = {n: judge(source).state.value for (w, n), (source, _) in FIXTURES.items() if w == wire}
    assert states == judged
    there = {f"{wire}/{path.name}" for path in (FOLDER / wire).iterdir()}
    assert there == {name for name in FILES if name.startswith(f"{wire}/")}


@wires
def test_no_fixture_that_is_cut_short_proposes_anything(wire: str) -> None:
    for name in ("token_limit", "pay_invoice_cut"):
        assert judge(FIXTURES[wire, name][0]).proposals == ()
