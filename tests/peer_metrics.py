"""The timings of a stream as three benchmarks define them, in integer nanoseconds.

Written from their definitions, in words and code of our own; nothing here is shared with
`streamlab/`, not even the reading of a file. Sources, as read in 2026:

- vLLM, `vllm bench serve` (once `benchmark_serving.py`): `async_request_openai_chat_completions`
  in `vllm/benchmarks/lib/endpoint_request_func.py` takes the times, `calculate_metrics` in
  `vllm/benchmarks/serve.py` makes the numbers.
- NVIDIA AIPerf: the classes in `src/aiperf/metrics/types/`, each named at its function.
- llmperf: `OpenAIChatCompletionsClient.llm_request` takes the times, and
  `get_token_throughput_latencies` in `token_benchmark_ray.py` divides by the tokens.

A `Stream` is what they have in common: pieces of content with the time of the read that completed
their frame. Where one of them counts something else as a piece, its function takes that.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

SECOND = 10**9


class Piece(NamedTuple):
    """Content that one frame brought."""

    t: int  #: nanoseconds since the request was sent
    kind: str  #: "thinking", "text", "tool" or "other"
    text: str


class Stream(NamedTuple):
    """One answer as the benchmarks see it."""

    pieces: tuple[Piece, ...]
    choices: tuple[int, ...]  #: Chat: when a frame with choices came, whatever was in them
    tokens: int | None  #: of output, thinking among them, as the usage says
    marker: int  #: when the last frame came that is no keep-alive
    end: int  #: when the body was over

    @property
    def times(self) -> list[int]:
        """When each piece of content came."""
        return [piece.t for piece in self.pieces]

    def of(self, *kinds: str) -> list[int]:
        """The times of some kinds alone."""
        return [piece.t for piece in self.pieces if piece.kind in kinds]


def gaps(times: Sequence[int]) -> list[int]:
    return [after - before for before, after in pairwise(times)]


# --- vLLM -----------------------------------------------------------------------------------------


def vllm_ttft(times: Sequence[int]) -> int:
    """From just before the request to the first frame that has choices."""
    return times[0]


def vllm_itl(times: Sequence[int]) -> list[int]:
    """From each such frame to the next; all requests' gaps go into one pool."""
    return gaps(times)


def vllm_e2el(times: Sequence[int]) -> int:
    """From just before the request to the last such frame ("latency")."""
    return times[-1]


def vllm_tpot(times: Sequence[int], tokens: int) -> Fraction:
    """(latency - ttft) / (tokens - 1); a request of one token has none."""
    return Fraction(times[-1] - times[0], tokens - 1)


# --- AIPerf ---------------------------------------------------------------------------------------


def aiperf_ttft(times: Sequence[int]) -> int:
    """`TTFTMetric`: to the first response with content of any kind, thinking too."""
    return times[0]


def aiperf_ttfo(stream: Stream) -> int:
    """`TimeToFirstOutputTokenMetric`: to the first content that is no thinking."""
    return min(stream.of("text", "tool"))


def aiperf_ttst(times: Sequence[int]) -> int:
    """`TTSTMetric`: from the first response with content to the second."""
    return times[1] - times[0]


def aiperf_request_latency(times: Sequence[int]) -> int:
    """`RequestLatencyMetric`: to the last response with content, not to the end of the body."""
    return times[-1]


def aiperf_itl(times: Sequence[int], tokens: int) -> Fraction:
    """`InterTokenLatencyMetric`: (request latency - ttft) / (tokens - 1), thinking counted."""
    return Fraction(aiperf_request_latency(times) - aiperf_ttft(times), tokens - 1)


def aiperf_icl(times: Sequence[int]) -> list[int]:
    """`InterChunkLatencyMetric`: from each response with content to the next."""
    return gaps(times)


def aiperf_throughput_per_user(times: Sequence[int], tokens: int) -> Fraction:
    """`OutputTokenThroughputPerUserMetric`: 1 / inter-token latency, in tokens a second."""
    return SECOND / aiperf_itl(times, tokens)


def aiperf_goodput(
    values: Sequence[dict[str, float]], most: dict[str, float], seconds: float
) -> float:
    """`GoodputMetric`: requests that have every metric, each within its bound, / seconds."""
    good = [all(name in each and each[name] <= most[name] for name in most) for each in values]
    return sum(good) / seconds if most else 0.0


# --- llmperf --------------------------------------------------------------------------------------


def llmperf_ttft(stream: Stream) -> int:
    """To the first non-empty text."""
    return stream.of("text")[0]


def llmperf_itl(stream: Stream, tokens: int) -> Fraction:
    """The sum of all waits for text, the first one too, / tokens of the text."""
    waits = gaps([0, *stream.of("text")])
    return Fraction(sum(waits), tokens)


def llmperf_e2e(stream: Stream) -> int:
    """To the end of the body."""
    return stream.end


def llmperf_throughput(stream: Stream, tokens: int) -> Fraction:
    """Tokens of the text / e2e, in tokens a second."""
    return Fraction(tokens * SECOND, stream.end)


# --- Reading a timed recording, on our own --------------------------------------------------------


def opened(lines: str, wire: str) -> Stream:
    """Read the lines of a `.stream.jsonl`."""
    pieces: list[Piece] = []
    choices: list[int] = []
    tokens, marker, end, names = None, 0, 0, set[str]()
    frames = Frames()
    for line in lines.split("\n")[1:-1]:
        item = json.loads(line, parse_float=Decimal)
        end = int(Decimal(item["t"]) * SECOND)
        data = item.get("data", "").encode() or base64.b64decode(item.get("b64", ""))
        for payload in frames.feed(data):
            marker = marker if payload.get("type") == "ping" else end
            found = [(kind, text) for kind, text in SAID[wire](payload, names) if text]
            pieces += [Piece(end, kind, text) for kind, text in found]
            choices += [end] if payload.get("choices") else []
            said = TOKENS[wire](payload)
            tokens = said if said is not None else None if found else tokens
    return Stream(tuple(pieces), tuple(choices), tokens, marker, end)


class Frames:
    """Payloads out of bytes, each given by the byte that completes its blank line."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._line = bytearray()
        self._cr = False

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        for byte in data:
            lf_of_cr = self._cr and byte == 10
            self._cr = byte == 13
            if lf_of_cr:
                continue
            if byte not in (10, 13):
                self._line.append(byte)
                continue
            line, self._line = bytes(self._line), bytearray()
            if line:
                self._lines.append(line)
                continue
            data_lines = [each[5:].strip() for each in self._lines if each.startswith(b"data:")]
            self._lines = []
            if data_lines:
                done = data_lines == [b"[DONE]"]
                yield {} if done else json.loads(b"\n".join(data_lines))


Said = Iterator[tuple[str, str]]


def _claude(payload: dict[str, Any], kinds: set[str]) -> Said:
    part = f"{payload.get('index')}"
    if payload["type"] == "content_block_start":
        block = payload["content_block"]
        if block["type"] in ("tool_use", "server_tool_use"):
            yield "tool", block["name"]
        elif block["type"] in ("text", "thinking"):
            yield block["type"], block[block["type"]]
        else:
            kinds.add(part)
            yield "other", block["type"]
    if payload["type"] == "content_block_delta":
        delta = payload["delta"]
        if part in kinds:
            yield "other", delta["type"]
        yield "text", delta.get("text", "") if delta["type"] == "text_delta" else ""
        yield "thinking", delta.get("thinking", "")
        yield "tool", delta.get("partial_json", "")


def _chat(payload: dict[str, Any], calls: set[str]) -> Said:
    for choice in payload.get("choices", ()):
        delta = choice["delta"]
        yield "thinking", delta.get("reasoning_content") or ""
        yield "text", delta.get("content") or delta.get("refusal") or ""
        for call in delta.get("tool_calls", ()):
            function, key = call.get("function", {}), f"{choice['index']} {call['index']}"
            if key not in calls and function.get("name"):
                calls.add(key)
                yield "tool", function["name"]
            yield "tool", function.get("arguments") or ""


def _responses(payload: dict[str, Any], _: set[str]) -> Said:
    kind = payload["type"].removeprefix("response.")
    if kind == "output_item.added" and payload["item"]["type"].endswith("_call"):
        yield "tool", payload["item"].get("name") or payload["item"]["type"]
    if kind.endswith(".delta"):
        kinds = {"output_text": "text", "refusal": "text"}
        by_kind = kinds.get(kind.split(".")[0], "thinking" if "reasoning" in kind else "tool")
        yield by_kind, payload["delta"]


def _gemini(payload: dict[str, Any], _: set[str]) -> Said:
    for candidate in payload.get("candidates", ()):
        for part in candidate.get("content", {}).get("parts", ()):
            yield "thinking" if part.get("thought") else "text", part.get("text", "")
            if call := part.get("functionCall"):
                yield "tool", call.get("name", "")
                yield "tool", json.dumps(call["args"]) if "args" in call else ""


SAID = {
    "claude": _claude,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "gemini": _gemini,
}


def _gemini_tokens(payload: dict[str, Any]) -> int | None:
    usage = payload.get("usageMetadata", {})
    if "candidatesTokenCount" not in usage:
        return None
    return int(usage["candidatesTokenCount"]) + int(usage.get("thoughtsTokenCount", 0))


TOKENS = {
    "claude": lambda payload: payload.get("usage", {}).get("output_tokens"),
    "openai-chat": lambda payload: (payload.get("usage") or {}).get("completion_tokens"),
    "openai-responses": lambda payload: (payload.get("response", {}).get("usage") or {}).get(
        "output_tokens"
    ),
    "gemini": _gemini_tokens,
}
