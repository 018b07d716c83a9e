"""What a wire format can't say, as data: where the same answer is not the same on two wires.

A translator between formats loses, guesses or invents exactly these things. `NOT_MAPPED` has one
row for each, by wire; the topic is one of `TOPICS`, so that the rows of two wires can be laid side
by side. Where a topic is missing, the format says it in full.
"""

from __future__ import annotations

import msgspec

__all__ = ["NOT_MAPPED", "TOPICS", "Gap"]

#: What is compared, and the question that it asks of a format.
TOPICS = {
    "thinking": "Is thinking part of the answer?",
    "signature": "Is thinking proved, and can the proof go back?",
    "order": "Is it said in which order texts and calls came?",
    "boundaries": "Do parts start and stop by events of their own?",
    "end": "Does the stream have a final marker?",
    "call id": "Does a call have an id that its result can name?",
    "arguments": "Does a call's input come in pieces?",
    "restated": "Is the content said a second time, whole?",
    "stop reason": "Is it said why the model stopped, and that it waits for a tool?",
    "stop sequence": "Is it said which stop sequence ended the answer?",
    "refusal": "Is a refusal told from an answer?",
    "server tools": "Are calls that the provider runs itself in the stream?",
    "citations": "Does a text say what it cites, and where?",
    "usage": "When is it said how many tokens there were?",
    "names": "Does a frame name its event?",
}


class Gap(msgspec.Struct, frozen=True):
    """One thing that a wire format can't say, or says in a way that the others can't."""

    topic: str  #: one of `TOPICS`
    text: str  #: one plain sentence


#: Wire format -> its gaps, in the order of `TOPICS`.
NOT_MAPPED: dict[str, tuple[Gap, ...]] = {
    "claude": (
        Gap("restated", "No event repeats the content: who misses a delta can't find out later."),
        Gap("refusal", "A refusal is a stop reason; its words, if any, look like an answer."),
        Gap("usage", "Thinking is counted with the output, and is not always counted apart."),
    ),
    "openai-chat": (
        Gap("thinking", "The standard has no thinking; servers add it under names of their own."),
        Gap("signature", "Thinking has no signature, and does not go back to the server."),
        Gap("order", "A message is one text and a list of calls; their order is lost."),
        Gap(
            "boundaries", "No event starts or stops a part: a call ends when something else comes."
        ),
        Gap("restated", "No event repeats the content: who misses a delta can't find out later."),
        Gap("stop reason", "There is no word for a pause, and `length` stands for both limits."),
        Gap("stop sequence", "`stop` does not tell a stop sequence from the model's own end."),
        Gap("server tools", "There are no calls that the provider runs itself."),
        Gap("citations", "Text has no citations."),
        Gap("usage", "Tokens are counted only on request, in a last chunk that a cut loses."),
        Gap("names", "No frame has a name: what it is shows only in the fields that it has."),
    ),
    "openai-responses": (
        Gap("end", "Three events can be the last, and which one it is says whether all went well."),
        Gap("call id", "A call has two ids: the item's, and the one that its result must name."),
        Gap("restated", "It alone says everything again, so two versions can contradict."),
        Gap("stop reason", "No reason says that it waits for a tool; a call among the items does."),
        Gap("stop sequence", "It is never said that a stop sequence ended the answer."),
        Gap("server tools", "A result is a field of the call, not a part that follows it."),
        Gap("usage", "Tokens are counted in the last event alone, which a cut loses."),
    ),
    "gemini": (
        Gap("signature", "The signature is on the part after the thinking, not on the thinking."),
        Gap("boundaries", "No event starts or stops a part: a text ends when another kind comes."),
        Gap("end", "There is no final marker: only the end of the body follows the last chunk."),
        Gap(
            "call id",
            "A call need not have an id, so two equal calls can be one that is said twice.",
        ),
        Gap("arguments", "The input comes whole in one part, or by path on Vertex, never as text."),
        Gap("restated", "No event repeats the content: who misses a chunk can't find out later."),
        Gap("stop reason", "`STOP` ends a call too, and a pause is no end: it asks to be resumed."),
        Gap("stop sequence", "`STOP` does not tell a stop sequence from the model's own end."),
        Gap("refusal", "A block ends the answer by a reason of its own, often without any text."),
        Gap("citations", "Citations belong to the candidate as a whole, not to one text."),
        Gap("usage", "Thinking is counted apart from the output, not in it."),
        Gap("names", "No frame has a name: what it is shows only in the fields that it has."),
    ),
}
