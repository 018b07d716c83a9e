"""The doctor's rules for what the readers report: one row for each id of a problem.

A row: the id, how bad it is at most, where its cause likely lies, and what it means. Rows stand
under the public page that they follow from. Where a row says "vendor", an imitator of the vendor's
wire is meant as well. Read next: `rules.py`, which joins these with the doctor's own rules.
"""

from __future__ import annotations

__all__ = ["SOURCES", "WIRE_RULES"]

#: Short name -> the page.
SOURCES = {
    "event stream": "WHATWG HTML 9.2.6, "
    "https://html.spec.whatwg.org/multipage/server-sent-events.html",
    "HTTP": "RFC 9112, section 8, https://www.rfc-editor.org/rfc/rfc9112#section-8",
    "TCP": "RFC 9293, section 3.10.7, https://www.rfc-editor.org/rfc/rfc9293",
    "JSON": "RFC 8259, https://www.rfc-editor.org/rfc/rfc8259",
    "I-JSON": "RFC 7493, section 2, https://www.rfc-editor.org/rfc/rfc7493",
    "UTF-8": "RFC 3629, https://www.rfc-editor.org/rfc/rfc3629",
    "claude": "Claude docs, https://platform.claude.com/docs/en/build-with-claude/streaming",
    "claude stop": "Claude docs, https://platform.claude.com/docs/en/build-with-claude/"
    "handling-stop-reasons",
    "claude errors": "Claude docs, https://platform.claude.com/docs/en/api/errors",
    "claude thinking": "Claude docs, https://platform.claude.com/docs/en/build-with-claude/"
    "extended-thinking",
    "chat": "OpenAI API reference, https://platform.openai.com/docs/api-reference/chat-streaming",
    "responses": "OpenAI API reference, "
    "https://platform.openai.com/docs/api-reference/responses-streaming",
    "calls": "OpenAI docs, https://platform.openai.com/docs/guides/function-calling",
    "gemini": "Gemini API reference, https://ai.google.dev/api/generate-content",
    "gemini signatures": "Gemini API docs, https://ai.google.dev/gemini-api/docs/thought-signatures",
    "interactions": "Gemini API docs, https://ai.google.dev/gemini-api/docs/interactions/streaming",
    "buffering": "nginx docs, "
    "https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering",
    "all wires": "the four wires' own pages: their readers are streamlab/wire",
    "bounds": "ours: streamlab/wire/reader.py has the bounds, `streamlab show --help` sets them",
}

#: (id, severity, layer, what it means)
Row = tuple[str, str, str, str]

#: Source -> its rules.
WIRE_RULES: dict[str, tuple[Row, ...]] = {
    "event stream": (
        ("empty", "warning", "gateway", "No event came at all, under HTTP 200."),
        (
            *("unfinished-block", "warning", "gateway"),
            "The last frame has no blank line, so it was never dispatched: the body stops in it.",
        ),
        (
            *("unframed", "warning", "gateway"),
            "Lines are no field of an event stream: something else writes into the body.",
        ),
        (
            *("no-data", "warning", "gateway"),
            "A named event has no data, so nothing was dispatched: a line end or a line was lost.",
        ),
        (
            *("not-a-stream", "error", "gateway"),
            "The body is no event stream: a web page, a picture, or a whole answer in one piece.",
        ),
        ("unknown-wire", "error", "vendor", "Frames, but in none of the wire formats known here."),
    ),
    "JSON": (
        (
            *("not-json", "error", "gateway"),
            "A frame's data is no JSON: servers encode it with a library, so it was spoilt on the "
            "way, or two frames became one.",
        ),
        ("not-an-object", "error", "vendor", "A frame's data is JSON, but no object."),
        ("malformed", "error", "vendor", "A field is missing, or of another type than documented."),
        (
            *("tool-input", "warning", "model"),
            "A tool's input is not one JSON object: cut short, with text after it, with a key "
            "twice, with NaN, or with half a character.",
        ),
    ),
    "UTF-8": (
        (
            *("invalid-utf8", "error", "gateway"),
            "Bytes are not UTF-8: something cut or re-encoded a character. In a call this is a "
            "forgery, in text a blemish.",
        ),
    ),
    "all wires": (
        (
            *("incomplete", "warning", "gateway"),
            "The stream ended and something of the grammar is still missing.",
        ),
        (
            *("provider-error", "error", "vendor"),
            "The provider says that it failed, though HTTP said 200.",
        ),
        (
            *("ambiguous", "warning", "vendor"),
            "It cannot be proved whose fragment something is, or that nothing is missing; nothing "
            "is guessed.",
        ),
        (
            *("unknown", "note", "vendor"),
            "An event, block or field of a newer version: kept, and granted nothing.",
        ),
        (
            *("event-name", "warning", "vendor"),
            "The event's name and the payload's type differ, or the wire has no names at all.",
        ),
        (
            *("unnamed-event", "warning", "gateway"),
            "Events without a name, where the wire names them all: a translator left them out, and "
            "SDKs drop such events silently.",
        ),
        ("no-type", "warning", "vendor", "A payload without its type; the event's name counts."),
        (
            *("done-marker", "warning", "vendor"),
            "[DONE] on a wire that has another marker; it completes nothing.",
        ),
        (
            *("stop-reason-label", "warning", "vendor"),
            "The stop reason says that the answer is over, but there is a call to run.",
        ),
        (
            *("tool-use-without-call", "warning", "vendor"),
            "The stop reason says tool use, but there is no call to run.",
        ),
        ("second-answer", "error", "gateway", "A second answer begins after the first one's end."),
        (
            *("second-start", "error", "gateway"),
            "A second answer begins inside the first: a retry behind the client's back, or a "
            "client that connected again.",
        ),
        (
            *("after-the-end", "error", "gateway"),
            "A frame comes after the final marker and belongs to no answer: it is late.",
        ),
        ("end-twice", "warning", "gateway", "The final marker came twice."),
        (
            *("before-start", "error", "gateway"),
            "Content comes before the start of the answer: the start was lost, or is late.",
        ),
        (
            *("index-reused", "error", "vendor"),
            "A part begins under a number that is in use or has been used.",
        ),
        (
            *("too-many-open", "error", "vendor"),
            "More parts are open at once than any honest answer has.",
        ),
        ("more-problems", "note", "", "There are more problems than are listed."),
    ),
    "claude": (
        ("delta-after-stop", "error", "vendor", "A block goes on after it has stopped."),
        (
            *("delta-without-start", "error", "gateway"),
            "A delta for a block that never started: its start was lost, or is late.",
        ),
        ("stop-without-start", "error", "gateway", "A stop for a block that never started."),
        ("stop-after-stop", "warning", "gateway", "A block stops twice; nothing is lost."),
        ("delta-kind", "error", "vendor", "A delta of one kind for a block of another."),
        ("empty-delta", "note", "vendor", "A delta without its text: read as an empty one."),
        ("two-inputs", "error", "vendor", "A call's start holds one input and its deltas another."),
        ("stop-reason-changed", "error", "vendor", "Two different stop reasons."),
        (
            *("stop-too-early", "error", "vendor"),
            "The final marker comes before everything that must come before it.",
        ),
        (
            *("content-in-start", "warning", "vendor"),
            "The message starts with blocks that no event is about.",
        ),
        ("reason-in-start", "warning", "vendor", "The stop reason stands in message_start only."),
        ("after-stop-reason", "warning", "vendor", "Content comes after the stop reason."),
        ("index-order", "warning", "vendor", "Blocks do not start in the order of their numbers."),
    ),
    "chat": (
        (
            *("done-too-early", "warning", "vendor"),
            "[DONE] comes, and a choice has no finish reason: nothing says that it is over.",
        ),
        ("done-twice", "warning", "gateway", "[DONE], or the end of an item, came again."),
        (
            *("after-done", "warning", "gateway"),
            "A chunk without content comes after [DONE], often the usage.",
        ),
        ("after-finish", "warning", "vendor", "Content comes after the finish reason."),
        ("finish-again", "note", "vendor", "The finish reason came again, the same."),
        (
            *("finish-changed", "warning", "vendor"),
            "The finish reason came again, another one; the last counts.",
        ),
        (
            *("id-changed", "note", "vendor"),
            "The id of the message changes: a habit of some servers, or another answer.",
        ),
        (
            *("text-restated", "warning", "vendor"),
            "The whole message at the end has another text than its deltas.",
        ),
        ("two-reasonings", "warning", "vendor", "Two fields hold thinking, and differ."),
        ("too-many-choices", "error", "vendor", "More choices than any request may ask for."),
    ),
    "calls": (
        ("call-type", "error", "vendor", "A call goes on as one of another type."),
        (
            *("call-without-name", "error", "gateway"),
            "A call never had a name: the fragment that it begins with was lost.",
        ),
        ("call-without-id", "warning", "vendor", "A call has no id, so its result cannot name it."),
        ("call-restated", "warning", "vendor", "A whole call came again; it is kept once."),
        ("name-in-pieces", "warning", "vendor", "A tool's name comes in pieces."),
        ("too-many-calls", "error", "vendor", "More calls in one answer than any honest one has."),
    ),
    "responses": (
        (
            *("sequence-gap", "note", "gateway"),
            "A sequence number is missing: an event was lost, or came late.",
        ),
        ("sequence-back", "warning", "gateway", "A sequence number comes again, or out of order."),
        ("created-again", "note", "gateway", "response.created came again, of the same response."),
        ("response-id-changed", "note", "vendor", "The response's id changes."),
        ("no-response", "warning", "vendor", "A terminal event without its response."),
        ("no-index", "warning", "vendor", "An event without its index."),
        (
            *("no-output-index", "warning", "vendor"),
            "Events without an output_index: their ids or their order count.",
        ),
        ("no-part", "note", "vendor", "A part event without its part."),
        ("item-again", "note", "gateway", "An item is announced again."),
        (
            *("item-id-changed", "note", "vendor"),
            "An item has another id than before; its index counts.",
        ),
        ("item-type-changed", "warning", "vendor", "An item ends as another type than it began."),
        (
            *("two-items", "warning", "vendor"),
            "An event names one item by its index and another by its id.",
        ),
        ("without-start", "warning", "gateway", "An item goes on that was never announced."),
        (
            *("delta-after-done", "warning", "vendor"),
            "A delta comes after its part was stated whole; it is left out.",
        ),
        (
            *("restated", "warning", "gateway"),
            "The deltas differ from the final version, which counts: a delta was lost or doubled.",
        ),
        (
            *("part-missing", "warning", "vendor"),
            "A part streamed that the final version does not have.",
        ),
        ("left-out", "warning", "vendor", "An item streamed that the final snapshot leaves out."),
        ("unstreamed", "note", "vendor", "An item is in the final snapshot only."),
        (
            *("unstreamed-item", "warning", "gateway"),
            "A text or a call is in the final snapshot only: its events never came.",
        ),
        (
            *("unfinished-item", "warning", "gateway"),
            "An item has no end though the response is complete.",
        ),
        ("malformed-item", "warning", "vendor", "An item without a type in the final snapshot."),
        ("call-renamed", "warning", "vendor", "A call has another name or id than before."),
        (
            *("call-id-changed", "warning", "vendor"),
            "A call ends with another id than it was announced with.",
        ),
        ("status", "error", "vendor", "The terminal event and the status in it disagree."),
        ("image", "warning", "vendor", "A preview of an image of no open item."),
        ("too-many-images", "warning", "vendor", "More previews of an image than are kept."),
        ("audio", "note", "", "Audio is not assembled here."),
    ),
    "gemini": (
        ("after-finish-reason", "note", "gateway", "Content comes after the finish reason."),
        ("finish-reason-again", "note", "vendor", "The finish reason came again, the same."),
        (
            *("finish-reason-changed", "warning", "vendor"),
            "The finish reason came again, another one; the last counts.",
        ),
        ("numbered-finish-reason", "note", "vendor", "The finish reason is a number."),
        ("too-many-candidates", "error", "vendor", "More candidates than any request may ask for."),
        ("empty-part", "note", "vendor", "A part with nothing in it."),
        ("call-again", "note", "vendor", "A call came again, the same; it is kept once."),
    ),
    "bounds": (
        (
            *("bound", "warning", "vendor"),
            "The stream ran over a bound of ours, so it was not read to its end.",
        ),
        (
            *("recording-truncated", "warning", "ours"),
            "The recording's file stops short: what came after nobody kept.",
        ),
        (
            *("more-streams", "warning", "ours"),
            "The file holds several streams, and one of them is judged here.",
        ),
    ),
}
