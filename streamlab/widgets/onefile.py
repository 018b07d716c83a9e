"""One HTML file that holds a whole view: its module, its style and its data; no kernel, no network.

What a stranger wrote is JSON inside a data block, with every character escaped that could end the
block. A policy lets nothing run but the view's own module and style, by their hashes, and nothing
be fetched. Read next: `page.py` and `inspector_page.py`, the two views that save themselves so.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from streamlab.widgets.still import escape

__all__ = ["joined", "one_file", "to_text"]

HERE = Path(__file__).parent

STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 20px; background: Canvas; color: CanvasText; }
#view { max-width: 1240px; margin: 0 auto; }
"""

TEMPLATE = """<!doctype html>
<html lang="en" class="sl-page">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src {style_hash}; \
script-src {script_hash}; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="view"></main>
<noscript>{still}</noscript>
{blocks}
<script type="module">{script}</script>
</body>
</html>
"""

#: In a data block these could end it, open another, or (the last two) end a line of script.
ESCAPES = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}


def joined(*names: str) -> str:
    """Join files of a view into one ES module; between them there is nothing to bundle."""
    parts = ((HERE / name).read_text("utf-8") for name in names)
    return "".join(
        line for part in parts for line in part.splitlines(keepends=True) if line[:7] != "import "
    )


def to_text(value: Any) -> str:
    """Write JSON that any browser reads, in ASCII where UTF-8 lacks half of a character pair."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))


def one_file(title: str, style: str, script: str, data: Mapping[str, str], still: str) -> str:
    """Make the file. `data` are texts of JSON by the ids of their blocks; `still` is HTML."""
    look = style + STYLE
    blocks = (
        f'<script type="application/json" id="{name}">{text.translate(ESCAPES)}</script>'
        for name, text in data.items()
    )
    return TEMPLATE.format(
        title=escape(title),
        style=look,
        style_hash=_hash(look),
        script=script,
        script_hash=_hash(script),
        blocks="\n".join(blocks),
        still=still,
    )


def _hash(content: str) -> str:
    digest = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
