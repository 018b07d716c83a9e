"""Scenarios: the scripts that have names, so a lesson, a test and the server mean the same one.

`scenarios.cut_inside_tool_json()` is a `Script`; `SCENARIOS` has them all by name, each with where
its attempt ends under its own policy. Eight are acceptance sequences, and say which.
`FaultServer(scenario.recording)` and `streamlab serve --scenario NAME` play the streams to
a client of your own.

Read next: `analysis/trace.py`, which folds a script step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamlab.consumer.attempt import State
from streamlab.consumer.gates import EFFECT, Policy
from streamlab.consumer.workitem import policy_for
from streamlab.streams import faults, synth
from streamlab.streams.parts import Part, Style, Text, Thinking, ToolCall
from streamlab.streams.recording import Recording
from streamlab.streams.scenario import SCENARIOS, Scenario, enter, named
from streamlab.streams.script import Script
from streamlab.streams.wire_scenarios import enter_all

__all__ = ["SCENARIOS", "Scenario", "named"]

ABORTED, COMMITTED, HELD = State.ABORTED, State.COMMITTED, State.HELD
INCOMPLETE, INVALID, PREVIEW = State.INCOMPLETE, State.INVALID, State.PREVIEW
COMPLETE, VALIDATED = State.MESSAGE_COMPLETE, State.VALIDATED_PROPOSAL

LABEL, PAY, HELLO = "Is W-7 ready for review?", "Pay INV-17.", "Hello!"
READY = {"item": "W-7", "label": "Ready for review"}


def _ends(
    state: State, requirement: str = "", after: int | None = None
) -> Callable[[Callable[[], Script]], Callable[[], Script]]:
    """Put a function into `SCENARIOS`: its name, its one sentence, and what comes of its script."""
    return lambda make: enter(make.__name__, make.__doc__ or "", make, state, after, requirement)


def _label(recording: Recording | None = None, actor: str = "ada") -> Script:
    """The running example: `actor` asks about W-7, which is ada's, and every gate checks."""
    return Script(recording or synth.change_label(), policy=policy_for(actor), prompt=LABEL)


def _pay(policy: Policy = EFFECT) -> Script:
    return Script(synth.pay_invoice(), policy=policy, prompt=PAY)


def _hello() -> Script:
    return Script(synth.greeting(), prompt=HELLO)


def _proposing(input: dict[str, Any]) -> Script:
    """An answer that is nothing but one call of `change_label`."""
    return _label(synth.answer([ToolCall("change_label", input)], note="change_label alone"))


# --- The eight acceptance sequences ---------------------------------------------------------------


@_ends(PREVIEW, "R1", after=17)
def open_block_looks_whole() -> Script:
    """The fragments already make valid JSON, but their block is open, so nothing is judged."""
    return _label()


@_ends(VALIDATED, "R2")
def whole_proposal() -> Script:
    """A whole answer, and every gate passes: it may be committed, and nothing is done yet."""
    return _label()


@_ends(INCOMPLETE, "R3")
def dropped_after_block_stop() -> Script:
    """The tool's block has stopped and its input is parsed, then the connection drops."""
    return _label().disconnect(after=18, ending="reset")


@_ends(HELD, "R4")
def max_tokens_inside_tool_json() -> Script:
    """The tokens run out inside the tool's JSON: every marker comes, and only the reason tells."""
    return _label().token_limit(after=14)


@_ends(INVALID, "R5")
def error_then_late_completion() -> Script:
    """The provider reports an error, then a completion callback comes too late to change that."""
    return _label().error(after=14).late()


@_ends(ABORTED, "R6")
def cancelled_then_more_arrives() -> Script:
    """We cancel, the rest arrives all the same, and neither it nor a commit changes anything."""
    return _label().cancel(after=14, hang_up=False).late().commit()


@_ends(VALIDATED, "R7")
def delivered_twice() -> Script:
    """Two envelopes are delivered twice and count once; two equal fragments "ha" both count."""
    parts: list[Part] = [Text(("ha", "ha", "!")), ToolCall("change_label", READY)]
    style = Style(fragment=(60, 60), first_empty=False, pings=0)
    script = _label(synth.answer(parts, note="the same text twice", style=style))
    return script.redeliver(frame=4).redeliver(frame=script.frames)


@_ends(COMMITTED, "R8")
def answer_of_the_commit_lost() -> Script:
    """The effect happens and its answer is lost, so we ask for the record and submit nothing."""
    return _label().commit(lost=True).reconcile()


# --- The transport stops --------------------------------------------------------------------------


@_ends(INCOMPLETE)
def cut_inside_tool_json() -> Script:
    """The stream ends cleanly at `"amount": 1` of an intended 100000."""
    return _pay().disconnect(after=11)


@_ends(INCOMPLETE)
def cut_inside_a_frame() -> Script:
    """The bytes stop in the middle of a frame, so that frame is never dispatched."""
    return _pay().inject(faults.cut, after=10, inside=True, ending="cut")


@_ends(INCOMPLETE)
def clean_end_before_the_marker() -> Script:
    """All of the text came and a stop reason too, but the end marker did not."""
    return _hello().disconnect(after=10)


@_ends(INCOMPLETE)
def reset_in_text() -> Script:
    """The connection is torn down in the middle of a sentence."""
    return _hello().disconnect(after=6, ending="reset")


@_ends(INCOMPLETE)
def silent_in_text() -> Script:
    """Nothing comes any more, in the middle of a sentence, until the reader gives up."""
    return _hello().disconnect(after=6, ending="timeout")


@_ends(INCOMPLETE)
def thinking_cut_before_its_signature() -> Script:
    """The thinking is all there but its signature is not, so the API would never take it back."""
    return _label(synth.thinking_then_tool()).disconnect(after=7)


@_ends(VALIDATED)
def reset_after_the_marker() -> Script:
    """The connection is torn down after the end marker: the answer is whole all the same."""
    script = _label()
    return script.disconnect(after=script.frames, ending="reset")


@_ends(INVALID)
def reconnected() -> Script:
    """A client connects again by itself and is sent a new answer, which continues nothing."""
    return _label().inject(faults.reconnect, after=13)


# --- The provider stops ---------------------------------------------------------------------------


@_ends(COMPLETE)
def text_answer() -> Script:
    """A whole answer of text: it may be kept, and there is nothing to act on."""
    return _hello()


@_ends(HELD)
def refusal() -> Script:
    """A classifier stops the answer, under HTTP 200; what came before is not to be used."""
    return _hello().inject(faults.refuse, after=6)


@_ends(HELD)
def pause() -> Script:
    """The provider pauses a long turn, which is to be sent back as it is."""
    return _label().inject(faults.pause, after=8)


@_ends(HELD)
def max_tokens_in_text() -> Script:
    """The tokens run out in the middle of a sentence, and every marker comes."""
    return _hello().token_limit(after=6)


@_ends(INVALID)
def provider_overloaded() -> Script:
    """The provider is overloaded, long after it has said HTTP 200."""
    return _hello().error(after=6)


@_ends(INVALID)
def error_without_a_frame() -> Script:
    """An error comes as plain JSON, outside the framing of an event stream."""
    return _hello().inject(faults.json_error, after=6)


@_ends(INVALID)
def html_page() -> Script:
    """A proxy answers with a web page, under HTTP 200."""
    return _hello().inject(faults.html_page)


@_ends(INVALID)
def no_stop_reason() -> Script:
    """The message ends without saying why it ended."""
    return _label().inject(faults.no_stop_reason)


# --- The order of frames --------------------------------------------------------------------------


@_ends(VALIDATED)
def interleaved_blocks() -> Script:
    """Three blocks come side by side: the index says whose fragment it is, not the order."""
    return Script(synth.parallel_tools(), prompt="Label both.").inject(faults.interleave, seed=1)


@_ends(VALIDATED)
def unknown_event() -> Script:
    """An event of a new type comes: it is kept, and grants nothing."""
    return _label().unknown(after=13)


@_ends(VALIDATED)
def ping_flood() -> Script:
    """Two hundred pings come inside the tool's JSON: proof of life, and nothing more."""
    return _label().inject(faults.ping_flood, after=13)


@_ends(HELD)
def index_gap() -> Script:
    """The blocks are numbered 0 and 2, so a whole block may be missing."""
    return _label().inject(faults.index_gap, index=1)


@_ends(INVALID)
def second_message() -> Script:
    """A second message begins inside this one."""
    return _label().inject(faults.second_start, after=13)


@_ends(INVALID)
def delta_after_stop() -> Script:
    """A block goes on after it has stopped."""
    return _label().inject(faults.delta_after_stop, index=0)


@_ends(VALIDATED)
def lost_fragment() -> Script:
    """One fragment of an amount is lost, and what is left is valid JSON that pays 1."""
    return _pay().skip(frame=12)


@_ends(VALIDATED)
def doubled_fragment() -> Script:
    """One fragment of an amount comes twice, and what it makes is valid JSON that pays too much."""
    return _pay().inject(faults.duplicate, frame=12)


# --- Reads and times ------------------------------------------------------------------------------


@_ends(VALIDATED)
def split_anywhere() -> Script:
    """The reads end inside frames, line ends and characters; a read is not an event."""
    return _label().inject(faults.split, seed=3)


@_ends(VALIDATED)
def stalled() -> Script:
    """Nothing comes for half a minute, then all goes on."""
    return _label().inject(faults.stall, after=13)


@_ends(VALIDATED)
def buffered_by_a_proxy() -> Script:
    """A proxy holds everything back and lets it go at once: whole, and no longer a stream."""
    return _label().inject(faults.burst, after=0)


@_ends(INCOMPLETE)
def never_ending() -> Script:
    """Pings come for hours and nothing else, until our own bound on the whole is passed."""
    return _label().inject(faults.never_end, after=13)


# --- The gates ------------------------------------------------------------------------------------


@_ends(HELD)
def not_authorised() -> Script:
    """The answer is whole and valid, but W-7 is ada's and it is bo who asked."""
    return _label(actor="bo")


@_ends(INVALID)
def rule_broken() -> Script:
    """The input fits its schema, but W-7 is labelled that already."""
    return _proposing({"item": "W-7", "label": "Draft"})


@_ends(INVALID)
def schema_broken() -> Script:
    """The input is whole JSON, and has no label in it."""
    return _proposing({"item": "W-7"})


@_ends(INVALID)
def empty_input() -> Script:
    """A call without any input: its input is `{}`, which does not fit its schema."""
    return _proposing({})


@_ends(HELD)
def tool_not_permitted() -> Script:
    """The answer is whole, and calls a tool that is not on our list."""
    return _pay(policy_for("ada"))


@_ends(HELD)
def promise_without_a_call() -> Script:
    """A promise in text, and no call: the reason is tool_use, and there is nothing to run."""
    parts: list[Part] = [
        Thinking("I should relabel it.", "c3ludGhldGlj"),
        Text("I have relabelled W-7."),
    ]
    return _label(synth.answer(parts, "tool_use", note="a promise without a call"))


# --- Cancel, deliver, commit ----------------------------------------------------------------------


@_ends(ABORTED)
def cancelled_in_text() -> Script:
    """We stop reading in the middle of a sentence."""
    return _hello().cancel(after=6)


@_ends(ABORTED)
def cancelled_before_commit() -> Script:
    """Every gate has passed, then we cancel, and the commit that comes after is refused."""
    return _label().cancel().commit()


@_ends(COMMITTED)
def cancelled_after_commit() -> Script:
    """The effect is on record, so a cancellation comes too late."""
    return _label().commit().cancel()


@_ends(COMMITTED)
def committed_twice() -> Script:
    """The commit is asked for twice, and there is one effect."""
    return _label().commit().commit()


@_ends(State.RECONCILING)
def outcome_unknown() -> Script:
    """The effect may have happened, its answer is lost, and nobody has asked for the record yet."""
    return _label().commit(lost=True)


@_ends(VALIDATED)
def late_callback_of_an_older_attempt() -> Script:
    """A completion callback of an earlier attempt comes, and completes nothing here."""
    return _label().late(after=13)


# --- The other wire formats -----------------------------------------------------------------------

enter_all()


def __getattr__(name: str) -> Callable[[], Script]:
    """The scenarios that are made from a table, by name, as if each were a function here."""
    if name in SCENARIOS:
        return SCENARIOS[name].make
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
