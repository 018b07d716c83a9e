"""A link to a server that runs in this kernel. Its port is new each time, so no output keeps it."""

from __future__ import annotations

import re
from typing import Any

import anywidget
import traitlets

from streamlab.errors import UsageError

__all__ = ["PageLink"]

LOOPBACK = re.compile(r"http://(?:127\.0\.0\.1|\[::1\]|localhost):\d+/?")

STILL = "A link to the page, as long as this notebook's kernel runs."


class PageLink(anywidget.AnyWidget):
    """A link that opens in a tab of its own; only an address of this machine will do."""

    _esm = """
function render({ model, el }) {
  const link = document.createElement("a");
  link.href = link.textContent = model.get("url");
  link.target = "_blank";
  link.rel = "noopener";
  link.style.cssText = "color: light-dark(#0b57b0, #82b8ff); color: var(--jp-content-link-color)";
  el.append(link);
}
export default { render };
"""
    url = traitlets.Unicode(help="the page's address").tag(sync=True)

    def __init__(self, url: str) -> None:
        if not LOOPBACK.fullmatch(url):
            raise UsageError(f"{url!r} is no address of this machine, as http://127.0.0.1:8765 is")
        super().__init__(url=url)

    def __repr__(self) -> str:
        return STILL

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        data["text/plain"] = repr(self)
        data["text/html"] = f"<p>{STILL}</p>"
        return data, metadata
