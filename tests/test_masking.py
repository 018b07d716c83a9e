"""Masking: no secret survives, nothing else changes, and the answer is judged as before."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from streamlab.analysis.judge import Outcome, judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams import random_answers
from streamlab.streams.answering import answer, identified
from streamlab.streams.catalogue import FAULTS
from streamlab.streams.masking import KINDS, masked, masked_text
from streamlab.streams.masking_text import flat, secrets_in
from streamlab.streams.parts import Part, Text, Thinking, ToolCall
from streamlab.streams.random_answers import HARD_TEXT, random_answer
from streamlab.streams.recording import Chunk, Recording
from streamlab.wire.payload import compact
from tests.streams_for_tests import (
    JSON,
    STOP,
    TEXT,
    all_bytes,
    block,
    delta,
    end,
    fragment,
    frame,
    lines,
    start,
    stop,
    stream,
)
from tests.streams_for_tests import text as words_of

WIRES = ("claude", "openai-chat", "openai-responses", "gemini")


def made(*pieces: str) -> str:
    """A key that is none. In pieces, so that no scanner takes it for one in this file."""
    return "".join(pieces)


#: Kind -> (a text that holds one, the secret in it). Every one is invented.
SECRETS: dict[str, tuple[str, str]] = {
    "private key": (
        made("-----BEGIN RSA PRIVATE", " KEY-----\n", "QUJD" * 16, "\n", "REVG" * 3, "\n-----END"),
        "QUJD" * 16,
    ),
    "URL password": ("https://ann:hunter2@db.example/x", "ann:hunter2"),
    "cookie": ("Set-Cookie: session=s3cr3t-value; Path=/", "s3cr3t-value"),
    "Basic credential": ("Authorization: Basic YW5uOmh1bnRlcjI=", "YW5uOmh1bnRlcjI="),
    "bearer token": ("Authorization: Bearer abc.def-123~x/y+z=", "abc.def-123~x/y+z="),
    "Anthropic key": (made("my sk-", "ant-api03-AbC_d-123"), made("sk-", "ant-api03-AbC_d-123")),
    "OpenAI key": (made("is sk-", "proj-AbCd1234efgh"), made("sk-", "proj-AbCd1234efgh")),
    "Google key": (made("AI", "za", "Sy01234567890123456789012345678AB_-"),) * 2,
    "Google token": (made("ya", "29.a0AfB_byDemoDemoDemoDemo"),) * 2,
    "AWS key": (made("id AK", "IA1234567890ABCDEF."), made("AK", "IA1234567890ABCDEF")),
    "GitHub token": (made("gh", "p_0123456789abcdefghijABCDEFGHIJ012345"),) * 2,
    "Slack token": (made("xo", "xb-123456789012-abcdefABCDEF"),) * 2,
    "Stripe key": (made("sk_", "live_0123456789abcdef"),) * 2,
    "Hugging Face token": (made("h", "f_abcdefghijABCDEFGHIJabcdefghijABCD"),) * 2,
    "other vendor's key": (made("gs", "k_abcdefghijABCDEFGHIJ0123"),) * 2,
    "JWT": (made("ey", "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl-_"),) * 2,
    "URL key": ("GET /v1?alt=sse&key=top-secret1&x=1", "top-secret1"),
    "labelled secret": ('{"client_secret": "correct-horse-9"}', "correct-horse-9"),
    "e-mail address": ("write to Alice.B+tag@mail.example.com!", "Alice.B+tag@mail.example.com"),
}

MAIL = "alice@example.com"
MAIL_MASKED = "*" * len(MAIL)
KEY = made("sk-", "ant-api03-AbCdEfGh1234")

NO_SECRETS = (
    "Basic understanding of bearer authentication and bearer bonds",
    "react@18.2.0 and @mention and a@b, 5 @ 3.50 each",
    "class=sk-fading-circle sk-circle1; task-management-tool-2024-version-3",
    "max_tokens: 4096, password reset, token: Hello, the key=value form",
    "https://example.com/path?page=2&sort=name#top and mailto: nobody",
    "Cookie: a banner about cookies. eyJ alone, AKIA too, -----BEGIN CERTIFICATE-----",
    "**bold** * list ***** and 2*3*4",
)

# --- What a secret is -----------------------------------------------------------------------------


def test_every_kind_has_an_example_here_and_says_what_and_by_whom() -> None:
    assert {kind.name for kind in KINDS} == set(SECRETS)
    assert all(kind.says and kind.source for kind in KINDS)


@pytest.mark.parametrize("kind", SECRETS)
def test_a_secret_of_each_kind_becomes_stars(kind: str) -> None:
    text, secret = SECRETS[kind]
    clean, counts = masked_text(f"before {text} after")
    assert secret not in clean
    assert kind in dict(counts)
    assert len(clean) == len(f"before {text} after")
    assert clean.startswith("before ") and clean.endswith(" after")


@pytest.mark.parametrize("kind", SECRETS)
def test_in_json_within_json_it_is_found_and_both_stay_json(kind: str) -> None:
    text, secret = SECRETS[kind]
    inner = json.dumps({"said": f"first\n{text}", "more": [1]})
    clean, counts = masked_text(json.dumps({"arguments": inner}))
    assert kind in dict(counts)
    said = json.loads(json.loads(clean)["arguments"])["said"]
    assert secret not in said and said.startswith("first\n")


@pytest.mark.parametrize("text", NO_SECRETS)
def test_what_is_no_secret_is_unchanged(text: str) -> None:
    assert masked_text(text) == (text, ())


@pytest.mark.parametrize("text", [*HARD_TEXT, '{"a": "\\ud83d", "b": "\\u0"}', "\\", "\ud83d"])
def test_text_that_has_broken_a_reader_is_unchanged(text: str) -> None:
    assert masked_text(text) == (text, ())


def test_a_secret_that_is_named_twice_counts_once() -> None:
    assert masked_text("a@example.com, b@example.com, a@example.com")[1] == (("e-mail address", 2),)


def test_a_url_keeps_its_host_and_the_names_in_its_query() -> None:
    url = "https://u:p@api.example.com/v1/x?alt=sse&key=abcdef1234&page=2"
    assert masked_text(url)[0] == "https://***@api.example.com/v1/x?alt=sse&key=**********&page=2"


#: Inputs that make a pattern that backtracks, or that starts anew at each letter, never finish.
HOSTILE = {
    "letters": "a",
    "letters-and-dots": "a.",
    "at-signs": "a@",
    "domains": "a@b.",
    "backslashes": "\\",
    "unicode-escapes": "\\u0061",
    "schemes": "://a",
    "keys": "sk-",
    "key-in-key": "sk-ant-",
    "jwt-heads": "eyJ",
    "jwt-parts": "eyJaaaaaaaa.",
    "pem-heads": "-----BEGIN ",
    "pem-key": "-----BEGIN PRIVATE KEY-----",
    "pem-words": "-----BEGIN A B C D E F ",
    "pem-lines": "-----BEGIN PRIVATE KEY----- " + "A" * 10 + " ",
    "bearers": "Bearer ",
    "cookies": "cookie: a=",
    "labels": "api_key_",
    "labels-with-dashes": "a-",
    "queries": "?key=",
    "spaces": " ",
    "quotes": '"',
    "stars": "*",
    "percent": "a%40",
    "umlauts": "ä",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_megabyte_of_anything_is_read_to_the_end(piece: str) -> None:
    whole = piece * (1_000_000 // len(piece))
    clean, _ = masked_text(whole)
    assert len(clean.encode("utf-8")) == len(whole.encode("utf-8"))


def many(event: JSON, count: int) -> bytes:
    return stream([start(), block(0), *[event] * count, stop(0), end(), STOP])


#: Streams that cost too much where anything is looked for again and again.
HEAVY: dict[str, Callable[[], bytes]] = {
    "many-events": lambda: many(words_of(0, "a"), 20_000),
    "an-address-each": lambda: many(words_of(0, f"{MAIL} "), 20_000),
    "one-letter-of-an-address-each": lambda: b"".join(map(frame, (
        start(), block(0), *(words_of(0, letter) for letter in f"{MAIL} " * 2000)))),
    "one-large-text": lambda: many(words_of(0, f'"{MAIL}" \n' * 100_000), 1),
    "one-large-key": lambda: many(fragment(0, KEY * 100_000), 1),
    "many-answers": lambda: stream([*TEXT] * 3000),
    "many-choices": lambda: b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [
        {"index": n, "delta": {"content": f"{n}"}} for n in range(10_000)]}).encode() + b"\n\n",
    "the-same-in-many-choices": lambda: b"data: " + json.dumps(
        {"object": "chat.completion.chunk", "choices": [
        {"index": n, "delta": {"content": "a", "refusal": "a"}} for n in range(10_000)]}
    ).encode() + b"\n\n",
    "many-data-lines": lambda: b"data: {\n" + b"data: \n" * 300_000 + b'data: "type": "ping"}\n\n',
    "no-end": lambda: b'data: {"type": "message_start", "a": ["' + b"\\" * 1_000_000,
    "deep": lambda: b'data: {"type": "message_start", "a": ' + b"[" * 1_000_000,
    "lines": lambda: lines([*TEXT] * 3000),
    "an-array": lambda: json.dumps([*TEXT] * 3000).encode(),
}  # fmt: skip


@pytest.mark.parametrize("data", HEAVY.values(), ids=HEAVY.keys())
def test_a_heavy_stream_is_read_to_the_end(data: Callable[[], bytes]) -> None:
    recording = Recording.from_bytes(data())
    clean, _ = masked(recording)
    assert len(clean.data) == len(recording.data)
    assert MAIL.encode() not in clean.data


# --- Laws -----------------------------------------------------------------------------------------

#: What stands beside a secret: nothing that could be a letter of it.
joints = st.sampled_from([" ", "\n", ", ", ' "', "(", "\\ ", "\N{ROCKET} ", "\u2028", "<"])
words = st.sampled_from([*HARD_TEXT, *NO_SECRETS[:2], "x", "é", "\\n", "C:\\new"])
planted = st.sampled_from(sorted(SECRETS))


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, tuple[str, ...]]:
    """A text with secrets in it, and the secrets."""
    out, held = [draw(words)], []
    for kind in draw(st.lists(planted, max_size=3)):
        text, secret = SECRETS[kind]
        out += [draw(joints), text, draw(joints), draw(words)]
        held.append(secret)
    return "".join(out), tuple(held)


def built(wire: str, kinds: Sequence[str], said: Sequence[str], seed: int) -> Recording:
    """A whole answer of parts that say these texts, in a style that the seed draws."""
    parts: list[Part] = [MAKE[kind](text) for kind, text in zip(kinds, said, strict=False)]
    if wire in random_answers.SAYABLE:
        parts = random_answers.SAYABLE[wire](parts)
    rng = Random(seed)
    style = random_answers._random_style(rng)
    if wire != "claude":
        style = random_answers._more_style(style, parts, rng)
    script = identified(parts, wire, seed)
    return answer(script, wire=wire, seed=seed, style=style)


def in_wider_reads(recording: Recording) -> Recording:
    """The same answer, of whose reads none but the last has less than 16 bytes.

    Byte by byte, an answer takes ten times as long to judge; how reads cut a secret has its own
    tests.
    """
    reads, held = [], b""
    for at, data in recording.chunks:
        held += data
        if len(held) >= 16:
            reads.append(Chunk(at, held))
            held = b""
    if held:
        reads.append(Chunk(at, held))
    return structs.replace(recording, chunks=tuple(reads))


#: What can be said, by the part that says it.
MAKE: dict[str, Callable[[str], Part]] = {
    "text": Text,
    "thinking": lambda said: Thinking(said, "c2lnbmVkLXRoaW5raW5n"),
    "tool": lambda said: ToolCall("change_label", {"item": "W-7", "label": said}),
    "deep": lambda said: ToolCall(
        "post", {"body": json.dumps({"said": said}), "more": [{"text": said}]}
    ),
}
kinds = st.lists(st.sampled_from(sorted(MAKE)), min_size=1, max_size=4)
seeds = st.integers(0, 10**6)


judged = lru_cache(maxsize=2)(judge)  # an answer before and after: each law asks again


def everything(recording: Recording) -> str:
    """All that a reader could see: the bytes with and without escapes, and each part joined."""
    levels = flat(recording.data)
    plain = levels[-1].text if levels else recording.data
    turn = judged(recording).turn
    said = [compact([s.text, s.input, s.attached]) for s in turn.segments]
    shown = "\n".join([recording.note, recording.model, *said])
    levels = flat(shown.encode("utf-8", "surrogatepass"))
    both = plain + (levels[-1].text if levels else shown.encode("utf-8", "surrogatepass"))
    return both.decode("utf-8", "replace")


def verdict(outcome: Outcome) -> tuple[Any, ...]:
    facts = outcome.turn.facts
    problems = [(p.rule, p.severity, p.at) for p in facts.problems]
    segments = [
        (s.id, s.kind, s.status, s.start.type, s.start.name, s.start.call_id, s.signature)
        for s in outcome.turn.segments
    ]
    state = (outcome.state, outcome.complete, outcome.ending, outcome.wire, outcome.frames)
    return (*state, outcome.metrics, facts.stop_reason, problems, segments)


def check_laws(recording: Recording, held: Sequence[str]) -> Recording:
    """What masking promises; the recording without its secrets."""
    clean, counts = masked(recording)
    assert [(t, len(d)) for t, d in clean.chunks] == [(t, len(d)) for t, d in recording.chunks]
    pairs = zip(recording.data, clean.data, strict=True)
    assert {after for before, after in pairs if before != after} <= {ord("*")}
    assert not masked(clean)[1]
    if held:
        seen = everything(clean)
        assert not [secret for secret in held if secret in seen]
    assert bool(counts) >= bool(held)
    before, after = judged(recording), judged(clean)
    if TWICE not in said_of(after):
        assert verdict(after) == verdict(before)
    else:  # see `test_two_pieces_by_path_that_become_equal_hold_the_answer`
        assert after.state is State.HELD
    return clean


TWICE = "the same piece came twice in a row"


def said_of(outcome: Outcome) -> str:
    return "\n".join(problem.message for problem in outcome.turn.facts.problems)


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=40)  # each masks and judges twice
@given(data=st.data(), kinds=kinds, seed=seeds)
def test_no_secret_survives_and_the_answer_is_judged_the_same(
    wire: str, data: st.DataObject, kinds: list[str], seed: int
) -> None:
    said = [data.draw(texts()) for _ in kinds]
    recording = built(wire, kinds, [text for text, _ in said], seed)
    told = everything(recording)
    held = [secret for _, secrets in said for secret in secrets if secret in told]
    check_laws(recording, held)


@pytest.mark.parametrize("wire", WIRES)
@given(seed=seeds)
def test_an_answer_without_secrets_is_the_same_object(wire: str, seed: int) -> None:
    recording = random_answer(seed, wire)[1]
    clean, counts = masked(recording)
    assert clean is recording
    assert counts == ()


@pytest.mark.parametrize("wire", WIRES)
@settings(max_examples=40)  # each masks and judges twice
@given(data=st.data(), kinds=kinds, seed=seeds, place=st.floats(0, 1))
def test_a_stream_that_is_cut_anywhere_holds_no_whole_secret_either(
    wire: str, data: st.DataObject, kinds: list[str], seed: int, place: float
) -> None:
    said = [data.draw(texts()) for _ in kinds]
    recording = built(wire, kinds, [text for text, _ in said], seed)
    cut = Recording.from_bytes(recording.data[: int(len(recording.data) * place)], ending="cut")
    told = everything(cut)
    check_laws(cut, [secret for _, secrets in said for secret in secrets if secret in told])


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("wire", WIRES)
def test_a_broken_answer_with_secrets_is_judged_the_same(wire: str, fault: str) -> None:
    for seed in range(4):
        rng = Random(seed)
        kinds = [rng.choice(sorted(MAKE)) for _ in range(3)]
        said = [f"Hi {SECRETS[rng.choice(sorted(SECRETS))][0]} and {MAIL}." for _ in kinds]
        recording = built(wire, kinds, said, seed)
        try:
            recording = FAULTS[fault].apply(in_wider_reads(recording), seed)
        except UsageError:  # the fault has no place in this answer
            continue
        # Reordered, two pieces of one secret may be equal once they are masked.
        clean = masked(recording)[0] if fault == "reorder" else check_laws(recording, ())
        assert MAIL.encode() not in clean.data


@given(data=st.binary(max_size=300))
def test_of_bytes_that_mean_nothing_only_secrets_change(data: bytes) -> None:
    assert masked(Recording.from_bytes(data))[0].data == masked_bytes(data)


@given(recording=all_bytes)
def test_any_stream_at_all_keeps_its_length_and_is_judged_the_same(recording: bytes) -> None:
    check_laws(Recording.from_bytes(recording), ())


def masked_bytes(data: bytes) -> bytes:
    """What masking makes of bytes without a format, told by the patterns alone."""
    raw = bytearray(data)
    for first, last in secrets_in(data, defaultdict(set)):
        raw[first:last] = b"*" * (last - first)
    return bytes(raw)


# --- Where a secret can be ------------------------------------------------------------------------


def told(payloads: Sequence[JSON | bytes], **fields: Any) -> Outcome:
    """What a reader makes of a masked stream, which it judges as it would the original."""
    recording = Recording.from_bytes(stream(payloads), **fields)
    clean = check_laws(recording, ())
    assert MAIL not in everything(clean) and KEY not in everything(clean)
    return judge(clean)


def answer_of(*pieces: JSON, reason: str = "end_turn") -> list[JSON]:
    return [start(), *pieces, end(reason), STOP]


def split(text: str, *places: int) -> list[str]:
    edges = [0, *places, len(text)]
    return [text[a:b] for a, b in pairwise(edges)]


@pytest.mark.parametrize("place", range(1, len(MAIL)))
def test_an_address_in_two_deltas_is_found_wherever_it_is_cut(place: int) -> None:
    deltas = [words_of(0, piece) for piece in split(f"to {MAIL}.", 3 + place)]
    assert told(answer_of(block(0), *deltas, stop(0))).turn.text == f"to {MAIL_MASKED}."


def test_one_letter_a_delta_is_found_too() -> None:
    deltas = [words_of(0, letter) for letter in f"to {MAIL} and {KEY}"]
    assert told(answer_of(block(0), *deltas, stop(0))).turn.text.strip("*") == "to " + (
        f"{MAIL_MASKED} and "
    )


def test_two_texts_side_by_side_are_not_read_as_one() -> None:
    deltas = [
        words_of(0, "alice@exam"),
        words_of(1, "bob@exa"),
        words_of(0, "ple.com"),
        words_of(1, "mple.org"),
    ]
    turn = told(answer_of(block(0), block(1), *deltas, stop(0), stop(1))).turn
    assert [s.text for s in turn.segments] == [MAIL_MASKED, "*" * len("bob@example.org")]


def test_what_ends_one_text_and_begins_the_next_is_no_secret() -> None:
    parts = [
        block(0),
        words_of(0, "alice@"),
        stop(0),
        block(1),
        words_of(1, "example.com"),
        stop(1),
    ]
    assert told(answer_of(*parts)).turn.text == "alice@example.com"[:6] + "example.com"


INPUTS = {
    "plain": f'{{"to": "{MAIL}", "key": "{KEY}"}}',
    "after-an-escaped-newline": f'{{"body": "Hi\\n{MAIL}\\n{KEY}"}}',
    "in-escaped-quotes": f'{{"body": "say \\"{MAIL}\\" or \\"{KEY}\\""}}',
    "in-json-in-json": json.dumps({"body": json.dumps({"to": f"x\n{MAIL}", "key": KEY})}),
    "as-unicode-escapes": json.dumps({"to": MAIL}).replace("a", "\\u0061").replace("@", "\\u0040"),
    "after-an-emoji": json.dumps({"to": f"\N{ROCKET}{MAIL}"}),
}


@pytest.mark.parametrize("text", INPUTS.values(), ids=INPUTS.keys())
@pytest.mark.parametrize("ascii", [True, False], ids=["ascii", "utf-8"])
def test_a_tools_input_cut_anywhere_stays_json_and_keeps_no_secret(text: str, ascii: bool) -> None:
    for size in (1, 2, 3, 5, 8, 13, 1000):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        events = answer_of(
            block(0, "tool_use"), *(fragment(0, p) for p in pieces), stop(0), reason="tool_use"
        )
        raw = [frame(each, ascii=ascii) for each in events]
        outcome = told(raw)
        assert outcome.state is State.VALIDATED_PROPOSAL
        assert "*" in json.dumps(outcome.proposals[0].input)


FORMS: dict[str, Callable[[Sequence[JSON]], bytes]] = {
    "lf": stream,
    "crlf": lambda events: stream(events).replace(b"\n", b"\r\n"),
    "cr": lambda events: stream(events).replace(b"\n", b"\r"),
    "byte-order-mark": lambda events: b"\xef\xbb\xbf" + stream(events),
    "comments": lambda events: b": hello\n\n" + stream(events).replace(b"\n\n", b"\n: alive\n\n"),
    "no-space": lambda events: stream(events).replace(b"data: ", b"data:"),
    "data-lines": lambda events: stream(events).replace(b", ", b",\ndata: "),
    "json-lines": lines,
    "json-lines-with-a-mark": lambda events: b"\xef\xbb\xbf" + lines(events),
    "json-array": lambda events: json.dumps(list(events), indent=2).encode(),
}
SPLIT = answer_of(
    block(0), words_of(0, "to alice@exam"), words_of(0, "ple.com"), stop(0),
    block(1, "tool_use"), fragment(1, '{"key": "' + KEY[:9]), fragment(1, KEY[9:] + '"}'), stop(1),
    reason="tool_use",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_a_secret_in_pieces_is_found_in_every_form_and_over_every_read(
    form: str, size: int
) -> None:
    data = FORMS[form](SPLIT)
    chunks = (Chunk(float(at), data[at : at + size]) for at in range(0, len(data), size))
    recording = Recording(tuple(chunks), wire="claude")
    assert MAIL in everything(recording) and KEY in everything(recording)
    clean = check_laws(recording, (MAIL, KEY))
    assert masked(recording)[1] == (("Anthropic key", 1), ("e-mail address", 1))
    assert judge(clean).turn.text == f"to {MAIL_MASKED}"


def test_each_of_two_answers_in_one_recording_is_read() -> None:
    clean = check_laws(Recording.from_bytes(stream([*SPLIT, *SPLIT])), ())
    assert b"ple.com" not in clean.data and b"alice" not in clean.data


def test_the_piece_in_an_event_that_was_cut_short_is_read_too() -> None:
    data = stream(SPLIT)
    clean = check_laws(Recording.from_bytes(data[: data.index(b"ple.com") + 7]), ())
    assert b"ple.com" not in clean.data and b"alice" not in clean.data


def test_a_signature_is_never_touched_and_a_key_in_its_place_is() -> None:
    sealed = "AKIA1234567890ABCDEF" * 3 + "=="
    signed = delta(0, "signature_delta", signature=sealed)
    parts = answer_of(block(0, "thinking"), signed, stop(0))
    assert told(parts).turn.segments[0].signature == sealed
    leaked = delta(0, "signature_delta", signature=KEY)
    data = stream(answer_of(block(0, "thinking"), leaked, stop(0)))
    assert masked(Recording.from_bytes(data))[0].data == data.replace(KEY.encode(), b"*" * len(KEY))


def test_comments_ids_errors_and_what_is_no_json_are_read() -> None:
    data = (
        f": for {MAIL}\n\nid: {MAIL}\nevent: error\n"
        f'data: {{"error": {{"message": "bad key {KEY}"}}}}\n\ndata: not JSON {MAIL}\n\n'
    )
    clean = check_laws(Recording.from_bytes(data.encode()), (MAIL, KEY))
    assert clean.data.decode() == data.replace(MAIL, MAIL_MASKED).replace(KEY, "*" * len(KEY))


def test_the_note_and_the_models_name_are_masked() -> None:
    recording = Recording.from_bytes(stream(TEXT), note=f"by {MAIL}", model=f"ft:{MAIL}")
    clean, counts = masked(recording)
    assert (clean.note, clean.model) == (f"by {MAIL_MASKED}", f"ft:{MAIL_MASKED}")
    assert clean.chunks == recording.chunks and counts == (("e-mail address", 1),)


def test_the_same_thinking_under_two_names_is_masked_under_both() -> None:
    def chunk(**delta: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        payload = {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}
        return f"data: {json.dumps(payload)}\n\n".encode()

    def twice(text: str) -> bytes:
        return chunk(reasoning=text, reasoning_content=text)

    data = chunk(role="assistant") + twice("alice@exam") + twice("ple.com")
    clean = check_laws(Recording.from_bytes(data), (MAIL,))
    assert b"alice" not in clean.data and b"ple.com" not in clean.data
    assert [s.text for s in judge(clean).turn.segments] == [MAIL_MASKED]


# --- Limits that the module states ----------------------------------------------------------------


def test_two_pieces_by_path_that_become_equal_hold_the_answer() -> None:
    pieces = ["alice@", "exampl", "e.com"]
    args = [
        {"jsonPath": "$.to", "stringValue": piece, "willContinue": n < 2}
        for n, piece in enumerate(pieces)
    ]
    parts = [{"functionCall": {"name": "send", "id": "1", "willContinue": True}}]
    parts += [{"functionCall": {"partialArgs": [arg], "willContinue": True}} for arg in args]
    parts += [{"functionCall": {}}]
    given: list[JSON] = [{"content": {"parts": [part], "role": "model"}} for part in parts]
    given[-1]["finishReason"] = "STOP"
    data = b"".join(f"data: {json.dumps({'candidates': [one]})}\n\n".encode() for one in given)
    recording = Recording.from_bytes(data)
    clean, _ = masked(recording)
    assert judge(recording).state is State.VALIDATED_PROPOSAL
    assert judge(recording).proposals[0].input == {"to": MAIL}
    assert judge(clean).state is State.HELD and TWICE in said_of(judge(clean))


def test_keys_that_become_equal_keep_the_answer_from_being_acted_on() -> None:
    text = json.dumps({"alice@example.com": 1, "carol@example.com": 2})
    events = answer_of(block(0, "tool_use"), fragment(0, text), stop(0), reason="tool_use")
    recording = Recording.from_bytes(stream(events))
    clean, counts = masked(recording)
    assert counts == (("e-mail address", 2),)
    assert judge(recording).state is State.VALIDATED_PROPOSAL
    assert judge(clean).state is not State.VALIDATED_PROPOSAL
