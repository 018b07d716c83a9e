"""What an error is about, from its own words: who has to do something, and whether waiting helps.

Servers, relays and frameworks say the same few things in many shapes: a type in one place, a code
of HTTP in another, or nothing but a sentence. So the names and codes of an error are looked up
first, then its sentence; the first row of `CAUSES` that fits counts. Read next: `layers.py`.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from streamlab.analysis.judge import Outcome

__all__ = ["Cause", "Error", "bare_error", "cause_of", "error_of"]

#: Largest body that may be one bare error, in bytes.
MAX_BARE = 4096

#: Characters of an error's sentence that are searched.
MAX_SAID = 2000


class Error(NamedTuple):
    """An error as it came."""

    kind: str  #: its type or code
    message: str
    codes: frozenset[str] = frozenset()  #: every name and code in it, its kind among them
    owned: bool = True  #: whether it came as a frame, or has a vendor's name or shape


class Cause(NamedTuple):
    """A row: whose concern it is, and how it is known."""

    word: str  #: "blocked", "model", "ours", "busy" or "gateway"
    layer: str
    codes: frozenset[str]
    said: re.Pattern[str]
    says: str


def _words(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_BLOCKED = Cause(
    "blocked",
    "model",
    frozenset(
        {
            *("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"),
            *("bio_policy", "misalignment_policy_violation", "moderation_blocked"),
        }
    ),
    _words(
        r"content (management )?policy|(input|prompt|request|output|content) was (flagged|blocked)"
        r"|safety system|violat\w+ .{0,40}polic(y|ies)|content filter"
    ),
    "A classifier or a filter stopped it for what it says.",
)

_MODEL = Cause(
    "model",
    "model",
    frozenset({"tool_use_failed"}),
    _words(r"failed to (call a|parse (the )?(tool|function)) |malformed function call"),
    "The model wrote a call that the server could not read.",
)

#: Codes of HTTP that blame the request.
_REFUSED_CODES = ("400", "401", "402", "403", "404", "405", "411", "413", "414", "415", "422")

_OURS = Cause(
    "ours",
    "ours",
    frozenset(
        {
            *("invalid_request_error", "authentication_error", "billing_error"),
            *("permission_error", "not_found_error", "request_too_large", "insufficient_quota"),
            *("invalid_api_key", "context_length_exceeded", "invalid_prompt", "model_not_found"),
            *("string_above_max_length", "unsupported_parameter", "unsupported_value"),
            *("unsupported_country_region_territory", "previous_response_not_found"),
            *("INVALID_ARGUMENT", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND"),
            *("FAILED_PRECONDITION", "OUT_OF_RANGE", "API_KEY_INVALID"),
            *("BadRequestError", "AuthenticationError", "PermissionDeniedError", "NotFoundError"),
            *("UnprocessableEntityError", "ContextWindowExceededError", "budget_exceeded"),
            *("ValidationException", "AccessDeniedException", "ResourceNotFoundException"),
            *("UnrecognizedClientException", "ExpiredTokenException", "DeploymentNotFound"),
            *_REFUSED_CODES,
        }
    ),
    _words(
        r"(invalid|incorrect|missing|expired) (x-)?(api|subscription|access)[ -_]?(key|token)"
        r"|api[ -]key (is )?(not valid|invalid|missing|expired)|not authenticated|unauthori[sz]ed"
        r"|authenticat(ion|e) (failed|required|error|token)|AuthenticationError|credentials"
        r"|username or password"
        r"|access denied|forbidden|permission|not (allowed|supported) "
        r"|credit balance|insufficient (balance|credit|fund|quota)|budget"
        r"|payment required|plan and billing|context (length|window)|(prompt|input|request) is too"
        r" (long|large)|maximum (context|prompt)|reduce the length|does not exist|not found"
        r"|no route matched|field required|missing required|BadRequestError|unrecognized"
        r"|unsupported (parameter|value)|invalid (parameter|value|request|model|argument)"
    ),
    "The error says that the request is at fault.",
)

_BUSY = Cause(
    "busy",
    "vendor",
    frozenset(
        {
            *("429", "529", "rate_limit_error", "rate_limit_exceeded", "overloaded_error"),
            *("RESOURCE_EXHAUSTED", "UNAVAILABLE", "server_is_overloaded", "throttling_error"),
            *("ThrottlingException", "throttlingException", "TooManyRequestsException"),
            *("ServiceUnavailableException", "ModelNotReadyException", "RateLimitError"),
            *("tokens", "requests", "RateLimitReached"),
        }
    ),
    _words(r"rate[- _]?limit|too many requests|overloaded|throttl|at capacity|over capacity"),
    "The provider has too much to do, or lets us have no more for now.",
)

_GATEWAY = Cause(
    "gateway",
    "gateway",
    frozenset({"502", "504", "520", "521", "522", "523", "524", "525", "526", "530"}),
    _words(
        r"\b(bad gateway|gateway time-?out|upstream|proxy|nginx|cloudflare|envoy|haproxy|openresty"
        r"|litellm|openrouter|load balancer|no healthy|provider returned|endpoint request timed)\b"
    ),
    "The error speaks of what is between us and the vendor.",
)

_ENGINE = Cause(
    "engine",
    "vendor",
    frozenset(),
    _words(r"\b(model|cuda|gpu|inference|generation|engine|the server had an error)\b"),
    "The error speaks of the machine that runs the model.",
)

#: Of an error that says nothing of all that, and has nobody's shape.
_FOREIGN = Cause(
    "gateway",
    "gateway",
    frozenset(),
    _words("$^"),
    "An error outside the framing, in a shape that is not the vendor's.",
)

#: Names and codes first, in this order; a 429 that speaks of billing goes away with time.
BY_CODE = (_BLOCKED, _MODEL, _OURS, _BUSY, _GATEWAY)

#: Then sentences: a relay that passes on whose fault it was is not at fault itself.
BY_WORDS = (_BLOCKED, _MODEL, _BUSY, _OURS, _GATEWAY, _ENGINE)

#: How vendors name an error of their own, over all wires, as their pages list them.
VENDORS = frozenset(
    {
        *("api_error", "timeout_error", "conflict_error", "server_error", "internal_error"),
        *("vector_store_timeout", "internal_server_error", "INTERNAL", "DEADLINE_EXCEEDED"),
        *("ABORTED", "UNKNOWN", "CANCELLED"),
        *_BUSY.codes,
    }
)

#: Codes of HTTP that a vendor gives in an error of its own shape.
NUMBERS = frozenset({"408", "500", "503"})

#: The wire whose errors have the codes of HTTP themselves.
NUMBERED = ("gemini", "gemini-interactions")

_code = re.compile(
    r'"(?:type|code|status|reason|error_code|statusCode|status_code|__type)"\s*:\s*"?([\w.-]{1,80})'
)

#: The exceptions of a cloud's stream, each under its own name.
_exception = re.compile(r'^\s*\{\s*"(\w{1,60}(?:Exception|Error))"\s*:')

#: Field of a body that is nothing but an error, on whatever wire -> its type there.
SAYING: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("message", "Message", "title", "errorMessage"), str),
    "detail": (str, list),
    "fault": dict,
    "errors": list,
}

#: The status of a body that says that all is well.
FINE = ("ok", "OK", "success", 200)


def error_of(outcome: Outcome) -> Error | None:
    """The error that a reader reported, or one in a shape that no reader takes for one."""
    facts, signs = outcome.turn.facts, outcome.signs
    if not facts.error:
        return bare_error(outcome) or unread_error(outcome)
    kind, _, message = facts.error.partition(": ")
    text = signs.error.decode("utf-8", "replace")
    codes = frozenset({kind, *_code.findall(text)})
    nested = text.lstrip("[{ \r\n\t").startswith('"error"') and '"message"' in text
    numbered = kind.isdigit() and outcome.wire in NUMBERED
    named = kind in VENDORS or kind.endswith(("Exception", "Error")) or numbered
    owned = not signs.unframed or named or (nested and not codes.isdisjoint(NUMBERS))
    return Error(kind, message, codes, owned)


def bare_error(outcome: Outcome) -> Error | None:
    """A body that is one JSON object and says that something failed, in nobody's shape."""
    head = outcome.signs.head
    if outcome.frames > 1 or outcome.bytes > MAX_BARE or head.lstrip()[:1] != b"{":
        return None
    try:
        body = json.loads(head)
    except (ValueError, RecursionError):
        return None
    if not isinstance(body, dict) or body.get("status") in FINE:
        return None
    saying = (body[key] for key, kind in SAYING.items() if isinstance(body.get(key), kind))
    said = next(saying, None)
    if said is None and body != {"message": None}:
        return None
    return _made(head.decode("utf-8", "replace"), said, owned=False)


def unread_error(outcome: Outcome) -> Error | None:
    """The last that came, where it speaks of an error and is no event of any wire.

    One server writes `error: {…}` in place of `data: {…}`, which an event stream does not know; a
    cloud's exceptions are objects under their own names.
    """
    if outcome.complete:
        return None
    signs = outcome.signs
    text = signs.unknown.decode("utf-8", "replace")
    if named := _exception.match(text):
        return _made(text, text, named[1][:1].upper() + named[1][1:])
    lines = (p.message for p in outcome.turn.facts.problems if p.rule == "unframed")
    line = next(lines, "").partition("the first: ")[2]
    line = line.rpartition(" (byte ")[0].strip("b'\"")
    return _made(line, line) if line.lower().startswith("error:") else None


def _made(text: str, said: Any, kind: str = "error", owned: bool = True) -> Error:
    message = said if isinstance(said, str) else json.dumps(said)
    return Error(kind, message, frozenset({kind, *_code.findall(text)}), owned)


def cause_of(error: Error, wire: str | None = None) -> Cause | None:
    """Whose concern an error is, by its own words; None where it says nothing of that."""
    codes = error.codes - _GATEWAY.codes if wire in NUMBERED else error.codes
    named = next((cause for cause in BY_CODE if not cause.codes.isdisjoint(codes)), None)
    said = f"{error.kind}: {error.message}"[:MAX_SAID]
    told = next((cause for cause in BY_WORDS if cause.said.search(said)), None)
    if told is _BUSY and named is None and not error.owned:
        return _GATEWAY  # a limit of its own
    found = told if named is None or told is _BLOCKED else named
    return _FOREIGN if found is None and not error.owned else found
