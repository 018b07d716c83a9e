"""What counts as a secret: a table of patterns, each with what it is and where its form is written.

All patterns are of bytes, so a place in a text is a place in a file. Each takes time in proportion
to the text, whatever that is: quantifiers are possessive, so nothing is tried twice, and a run of
letters is entered only at its first one. None matches what it has masked already (`*`), and none
takes a quotation mark, a backslash or white space: what is masked stays the same JSON, on the same
lines. Read next: `masking_text.py`, which looks for them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

__all__ = ["KINDS", "Kind", "places"]


class Kind(NamedTuple):
    """One kind of secret. The secret is the group of that name; without one, the whole match."""

    name: str
    pattern: re.Pattern[bytes]
    says: str
    source: str
    needs: bytes = b""  #: what occurs in every match: where it is absent, nothing is searched
    holds: Callable[[bytes], bool] | None = None  #: what else must be true of the secret
    inner: re.Pattern[bytes] | None = None  #: the secrets inside a match, where it has several


def _is_basic(secret: bytes) -> bool:
    """Whether some base64 is a name and a password: "Basic understanding" is neither."""
    try:
        return b":" in base64.b64decode(secret + b"=" * (-len(secret) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_token(secret: bytes) -> bool:
    """Whether a word after "Bearer" is more than a word: "bearer authentication" is none."""
    return len(secret) >= 20 or any(b"0" <= secret[n : n + 1] <= b"9" for n in range(len(secret)))


def _key(prefix: str, rest: str, before: str = "A-Za-z0-9") -> re.Pattern[bytes]:
    """A key by its prefix, which no letter or digit stands before.

    The look-behind comes after the prefix, which then is what the engine searches for.
    """
    return re.compile(f"{prefix}(?<![{before}]{prefix}){rest}".encode())


WORD = "[A-Za-z0-9_-]"

#: Names whose values are secrets: in the query of a URL, and in JSON, headers and settings.
IN_URLS = (
    r"(?:api[_-]?|subscription-)?key|(?:access_|refresh_|id_|auth_|session_)?token|(?:client_)?secret"
    r"|password|passwd|sig|signature|x-amz-(?:signature|credential|security-token)|x-goog-signature"
)
LABELS = (
    r"(?:[a-z0-9]+[_-])*(?:api[_-]?key|access[_-]?token|refresh[_-]?token|auth[_-]?token"
    r"|session[_-]?token|client[_-]?secret|secret[_-]?(?:access[_-]?)?key)|password|passwd"
)

#: Of an address before its @: ASCII, and Latin, Greek and Cyrillic letters in UTF-8.
_LOCAL = rb"(?:[A-Za-z0-9._%+\-]|[\xc3-\xd3][\x80-\xbf])"
_BEFORE_LOCAL = rb"(?<![A-Za-z0-9._%+\-])(?<![\xc3-\xd3][\x80-\xbf])"
#: And after it: labels, the last of which is no number ("react@18.2.0" is a version).
_DOMAIN = rb"(?:[A-Za-z0-9-]++\.(?=[A-Za-z0-9-]))++[A-Za-z](?<=\.[A-Za-z])[A-Za-z0-9-]++"

#: A cookie's name, and a letter of its value (an attribute looks the same); a value ends where the
#: next header begins.
_COOKIE = rb"[!#-+.0-:<A-Z^-z|~-]++"
_COOKIE_VALUE = rb"[!#-:<-\[\]-~]"
_UP_TO_NEXT = rb"(?:(?!cookie[\"']?[ \t]*+:)" + _COOKIE_VALUE + rb")*+"

#: In the order in which they are looked for; what one has masked is not there for the next.
KINDS: tuple[Kind, ...] = (
    Kind(
        "private key",
        re.compile(
            rb"-----BEGIN (?:[A-Z0-9]++ )*?PRIVATE KEY-----"
            rb"(?:\s*+(?:Proc-Type|DEK-Info):[^\r\n\"]*+)*+"
            rb"(?P<secret>(?:\s*+[A-Za-z0-9+/=]{16,}+)*+"
            rb"(?:\s*+[A-Za-z0-9+/=]++(?=\s*+(?:-----END|\"|\Z)))?+)"
        ),
        "the body of a private key in PEM, up to its last line",
        "RFC 7468, section 10; RFC 1421 for the headers",
        b"PRIVATE KEY-----",
        lambda secret: bool(secret.strip(b"* \r\n\t")),
    ),
    Kind(
        "URL password",
        re.compile(rb"://(?!\*++@)(?P<secret>[^\s/?#@\"'<>\\]++)@"),
        "a user's name, and a password, before the host of a URL",
        "RFC 3986, section 3.2.1",
        b"://",
    ),
    Kind(
        "URL password",
        re.compile(
            rb"://(?P<secret>[^\s/?#@\"'<>\\:*\[]++:(?![0-9]*+(?:\"|\Z))[^\s/?#@\"'<>\\]++)(?=\"|\Z)"
        ),
        "the same in a text that ends before the host: what follows the colon is no port",
        "RFC 3986, section 3.2",
        b"://",
    ),
    Kind(
        "cookie",
        re.compile(
            rb"(?i)cookie[\"']?[ \t]*+:[ \t]*+[\"']?"
            + _COOKIE
            + rb"="
            + _UP_TO_NEXT
            + rb"(?:;[ \t]*+"
            + _COOKIE
            + rb"(?:="
            + _UP_TO_NEXT
            + rb")?+)*+"
        ),
        "the values of a Cookie or Set-Cookie header",
        "RFC 6265, section 4.1.1",
        inner=re.compile(
            rb"=(?!\*++(?!" + _COOKIE_VALUE + rb"))(?P<secret>" + _COOKIE_VALUE + rb"++)"
        ),
    ),
    Kind(
        "Basic credential",
        re.compile(rb"(?:[Bb]asic|BASIC)[ \t]++(?P<secret>[A-Za-z0-9+/]{4,}+={0,2}+)"),
        "a name and a password in base64, of HTTP authentication",
        "RFC 7617",
        holds=_is_basic,
    ),
    Kind(
        "bearer token",
        re.compile(rb"(?:[Bb]earer|BEARER)[ \t]++(?P<secret>[A-Za-z0-9._~+/-]{8,}+=*+)"),
        "a token of HTTP authentication: long, or with a digit, so that it is no word",
        "RFC 6750, section 2.1",
        holds=_is_token,
    ),
    Kind(
        "Anthropic key",
        _key("sk-ant-", f"{WORD}{{8,}}+"),
        "sk-ant-…",
        "the vendor's console; the form is not documented",
        b"sk-ant-",
    ),
    Kind(
        "OpenAI key",
        _key(
            "sk-",
            f"(?:(?:proj|svcacct|admin)-{WORD}{{8,}}+|(?={WORD}*[0-9]){WORD}{{20,}}+)",
            WORD[1:-1],
        ),
        "sk-proj-…, sk-svcacct-…, or sk- and 20 characters or more; other vendors took it over",
        "the vendor's console; the form is not documented",
        b"sk-",
    ),
    Kind(
        "Google key",
        _key("AIza", f"{WORD}{{35}}(?!{WORD})", WORD[1:-1]),
        "AIza and 35 characters",
        "Google Cloud, API keys",
        b"AIza",
    ),
    Kind(
        "Google token",
        _key(r"ya29\.", f"{WORD}{{20,}}+"),
        "an OAuth 2.0 access token: ya29.…",
        "Google Cloud, token types",
        b"ya29.",
    ),
    Kind(
        "AWS key",
        re.compile(rb"(?:AKIA|ASIA)(?<![A-Za-z0-9+/]....)[A-Z0-9]{16}(?![A-Za-z0-9+/])"),
        "an access key id: AKIA or ASIA and 16 characters",
        "AWS IAM user guide, unique identifiers",
        b"IA",
    ),
    Kind(
        "GitHub token",
        re.compile(
            rb"gh[pousr]_(?<![A-Za-z0-9]....)[A-Za-z0-9_]{20,}+"
            rb"|github_pat_(?<![A-Za-z0-9]github_pat_)[A-Za-z0-9_]{20,}+"
        ),
        "ghp_, gho_, ghu_, ghs_, ghr_ or github_pat_",
        "GitHub docs, about authentication",
        b"_",
    ),
    Kind(
        "Slack token",
        re.compile(
            rb"xox[abeoprs]-(?<![A-Za-z0-9].....)[A-Za-z0-9-]{10,}+"
            rb"|xapp-(?<![A-Za-z0-9]xapp-)[A-Za-z0-9-]{10,}+"
            rb"|hooks\.slack\.com/(?:services|workflows)/(?P<secret>[A-Za-z0-9/_-]{10,}+)"
        ),
        "xoxb-, xoxp- and their like, xapp-, and the path of a webhook",
        "Slack API docs, token types",
    ),
    Kind(
        "Stripe key",
        re.compile(
            rb"[sr]k_(?:live|test)_(?<![A-Za-z0-9]........)[A-Za-z0-9]{10,}+"
            rb"|whsec_(?<![A-Za-z0-9]whsec_)[A-Za-z0-9+/=]{10,}+"
        ),
        "sk_live_, sk_test_, rk_… and whsec_",
        "Stripe docs, API keys",
        b"_",
    ),
    Kind(
        "Hugging Face token",
        _key("hf_", "[A-Za-z0-9]{20,}+"),
        "hf_…",
        "Hugging Face docs, user access tokens",
        b"hf_",
    ),
    Kind(
        "other vendor's key",
        re.compile(
            rb"(?:gsk_|xai-|pplx-|nvapi-)(?<![A-Za-z0-9](?:....))" + rb"[A-Za-z0-9_-]{20,}+"
        ),
        "gsk_ (Groq), xai- (xAI), pplx- (Perplexity), nvapi- (NVIDIA)",
        "the vendors' consoles; the forms are not documented",
    ),
    Kind(
        "JWT",
        _key("eyJ", rf"{WORD}{{8,}}+\.{WORD}{{4,}}+(?:\.{WORD}*+)?+", WORD[1:-1]),
        "a JSON Web Token: its header, its claims and its proof",
        "RFC 7519; eyJ is the base64 of an object's first characters",
        b"eyJ",
    ),
    Kind(
        "URL key",
        re.compile(
            rb"(?i)[?&;](?:" + IN_URLS.encode() + rb")=(?!\*++(?![A-Za-z0-9._~%+/=:@!$,*-]))"
            rb"(?P<secret>[A-Za-z0-9._~%+/=:@!$,*-]{6,}+)"
        ),
        "the value of key, api_key, token, access_token, signature and their like in a URL",
        "RFC 3986, section 3.4, for the form; the names are the vendors'",
        b"=",
    ),
    Kind(
        "labelled secret",
        re.compile(
            rb"(?i)(?<![a-z0-9_-])(?:" + LABELS.encode() + rb")[\"']?[ \t]*+[:=][ \t]*+[\"']?"
            rb"(?!\*)(?P<secret>[A-Za-z0-9._~%+/=:@!$-]{8,}+)"
        ),
        "what follows api_key, access_token, client_secret, password and their like",
        "the names that vendors' APIs and their settings use",
    ),
    Kind(
        "e-mail address",
        re.compile(_BEFORE_LOCAL + _LOCAL + rb"++@" + _DOMAIN),
        "name@host.tld",
        "RFC 5321, section 4.1.2, without quoted names",
        b"@",
    ),
    Kind(
        "e-mail address",
        re.compile(rb"(?<![A-Za-z0-9._+\-])[A-Za-z0-9._+\-]++%40" + _DOMAIN),
        "the same in a URL: name%40host.tld",
        "RFC 3986, section 2.1",
        b"%40",
    ),
)


def places(kind: Kind, text: bytes | bytearray) -> Iterator[tuple[int, int]]:
    """Where a text holds secrets of a kind, as offsets."""
    if kind.needs not in text:
        return
    for found in kind.pattern.finditer(text):
        if kind.inner is not None:
            spans = [m.span("secret") for m in kind.inner.finditer(text, *found.span())]
        else:
            spans = [found.span("secret" if found.groupdict().get("secret") is not None else 0)]
        for start, end in spans:
            if kind.holds is None or kind.holds(bytes(text[start:end])):
                yield start, end
