"""The table of the doctor's rules: what can be wrong with a stream, and where that likely lies.

Each rule has a public source, and an example on which it fires (`examples.py`). A rule's
layer is the likeliest one; where more is known of a stream, `layers.py` decides. Its
severity is the worst that it can have: the readers say "note" where one wire allows what another
does not. Read next: `findings.py`, which finds the doctor's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from streamlab.analysis.doctor.wire_rules import SOURCES, WIRE_RULES, Row
from streamlab.wire.events import Severity

if TYPE_CHECKING:
    from streamlab.streams.recording import Recording

__all__ = ["LAYERS", "RULES", "Rule"]

#: Where a fault may lie; "" where nothing is wrong.
LAYERS = ("model", "vendor", "gateway", "network", "client", "ours")


class Rule(msgspec.Struct, frozen=True):
    """One rule: what it is about, how bad that is, and where to look."""

    id: str
    severity: Severity  #: at most
    layer: str  #: one of `LAYERS`; "" where it is nobody's fault
    says: str  #: a sentence
    source: str  #: a public page

    @property
    def example(self) -> Recording:
        """A small stream on which it fires."""
        from streamlab.analysis.doctor.examples import example

        return example(self.id)


#: What no reader reports, since it is about the end, the times, the gates, or the whole answer.
OWN_RULES: dict[str, tuple[Row, ...]] = {
    "HTTP": (
        (
            *("clean-end", "warning", "gateway"),
            "The body ended cleanly before the final marker, so HTTP noticed nothing; a body that "
            "ends with its connection never can.",
        ),
        (
            *("cut", "warning", "network"),
            "The connection broke inside the HTTP body, and HTTP says so.",
        ),
        (
            *("late-reset", "note", "network"),
            "The connection was torn down after the final marker: the answer is whole.",
        ),
    ),
    "TCP": (
        ("reset", "warning", "network", "The connection was torn down before the final marker."),
        (
            *("silence", "warning", "network"),
            "Nothing came any more, not even a ping, until the reader gave up.",
        ),
        ("cancelled", "note", "client", "Whoever read stopped reading, by their own wish."),
    ),
    "claude stop": (
        (
            *("token-limit", "warning", "ours"),
            "The tokens ran out: the request's limit, or the model's window.",
        ),
        (
            *("refused", "warning", "model"),
            "The model or a classifier refused; what came before is not to be used.",
        ),
        ("paused", "note", "vendor", "The provider paused a long turn."),
        (
            *("stop-reason", "warning", "vendor"),
            "The stop reason is one of an error, or one that is not known here.",
        ),
        (
            *("not-accepted", "warning", "ours"),
            "The answer is whole, and the policy does not accept how it ended.",
        ),
        (
            *("tool-not-permitted", "warning", "ours"),
            "The answer calls a tool that is not on the list.",
        ),
        ("schema", "warning", "model", "A tool's input does not fit its schema."),
        ("business-rule", "warning", "model", "A tool's input breaks a rule of the application."),
        ("not-authorised", "warning", "ours", "This actor may not do this to this item."),
    ),
    "claude errors": (
        (
            *("error-shape", "warning", ""),
            "The error has a shape that SDKs are known to miss: outside the framing, without its "
            "event name, or not where its wire puts it.",
        ),
    ),
    "claude thinking": (
        (
            *("unsigned-thinking", "warning", "gateway"),
            "Thinking stopped without its signature: the API will not take it back.",
        ),
    ),
    "claude": (
        (
            *("result-without-call", "warning", "vendor"),
            "The result of a tool that the provider ran names no call of this answer.",
        ),
        (
            *("usage-fell", "warning", ""),
            "A count of output tokens is below an earlier one: counts are totals so far, to be "
            "replaced, never added.",
        ),
        (
            *("no-usage", "note", "ours"),
            "No token counts came; some wires send them only where they are asked for.",
        ),
        (
            *("answer-again", "warning", "client"),
            "The stream's first frames came again, byte for byte: a client connected again by "
            "itself, and got the answer from its start.",
        ),
        (
            *("frame-again", "warning", "gateway"),
            "The frame at fault is, byte for byte, the one before it: it was delivered twice.",
        ),
    ),
    "chat": (
        (
            *("another-start", "warning", "gateway"),
            "A chunk with a new id, and a role or counts that begin again, comes in the middle: "
            "another answer.",
        ),
    ),
    "event stream": (
        (
            *("unread-error", "warning", "vendor"),
            "The last that came speaks of an error and is no event: clients ignore such a line or "
            "object.",
        ),
        (
            *("bom", "warning", "gateway"),
            "A byte order mark: the standard drops it, and two official SDKs lose the first event "
            "by it.",
        ),
        (
            *("cr-only", "warning", "gateway"),
            "Lines end with CR alone: legal, and many readers wait for an LF that never comes.",
        ),
        (
            *("line-separator", "note", ""),
            "A U+2028, U+2029 or U+0085 stands raw in the data: no line end to an event stream, "
            "but one to readers that split text into lines.",
        ),
    ),
    "I-JSON": (
        (
            *("half-character", "warning", "vendor"),
            "Text with half a character (a lone surrogate): it cannot be written as UTF-8.",
        ),
    ),
    "gemini": (
        (
            *("strange-line", "warning", "gateway"),
            "A comment, or a line with an event's name or an id: the official client of this wire "
            "cannot read it.",
        ),
        (
            *("no-space", "warning", "gateway"),
            "`data:` without the space: legal, and the official client of this wire cannot read "
            "it.",
        ),
    ),
    "gemini signatures": (
        (
            *("signature-alone", "note", ""),
            "A signature on a part without content: that part must be kept and returned all the "
            "same.",
        ),
    ),
    "buffering": (
        (
            *("buffered", "warning", "gateway"),
            "Content was held back and then came together: whole, and no longer a stream. Most "
            "often a proxy collects.",
        ),
        (
            *("slow-start", "warning", "vendor"),
            "The first content took very long: a queue, a long prompt, or thinking that is not "
            "shown.",
        ),
        (
            *("stall", "warning", "vendor"),
            "Nothing came for a long time in the middle, and then all went on.",
        ),
        ("slow-end", "warning", "vendor", "The final marker came long after the last content."),
    ),
}


def _table() -> dict[str, Rule]:
    rules = (
        Rule(id, cast(Severity, severity), layer, says, SOURCES[source])
        for rows in (WIRE_RULES, OWN_RULES)
        for source, listed in rows.items()
        for id, severity, layer, says in listed
    )
    return {rule.id: rule for rule in rules}


#: Every rule by its id.
RULES = _table()
