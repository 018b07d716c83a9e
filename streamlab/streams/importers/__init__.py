"""Recordings that other tools wrote: HAR, mitmproxy, cassettes, curl, logs, compressed files.

`streams_in(path)` is the one way in: it gives the streams of a file of any form, one after another,
each with what its file says about it. A plain stream is one stream and comes piece by piece; a
capture is read whole, within bounds, and what it holds is masked on the way in.

Read next: `exchange.py`, what a capture gives; `formats.py`, the table of the forms.
"""

from __future__ import annotations

from streamlab.streams.importers.opening import About, Opened, streams_from, streams_in

__all__ = ["About", "Opened", "streams_from", "streams_in"]
