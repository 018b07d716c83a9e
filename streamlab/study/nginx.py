"""A real nginx as a proxy, for as long as a `with` block: without privileges, in its own folder.

It listens on a Unix socket in that folder, so that no port is taken and nobody else can ask it.
Read next: `proxies.py`, which shows what its settings do to a stream.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from streamlab.errors import UsageError

__all__ = ["Nginx", "written"]

#: Seconds for nginx to start, or to stop.
PATIENCE = 10.0

CONFIG = """\
daemon off;
master_process off;
pid {home}/pid;
error_log {home}/log;
events {{ worker_connections 64; }}
http {{
  access_log off;
  client_body_temp_path {home}/body;
  proxy_temp_path {home}/proxy;
  fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi;
  scgi_temp_path {home}/scgi;
  server {{
    listen unix:{home}/socket;
    location / {{
      proxy_pass {url};
      proxy_set_header Host $http_host;
{lines}
    }}
  }}
}}
"""


def written(lines: tuple[str, ...], home: str, url: str) -> str:
    """A configuration with these lines in its `location`."""
    indented = "\n".join(f"      {line}" for line in lines)
    return CONFIG.format(home=home, url=url, lines=indented)


class Nginx:
    """A proxy in front of `url`, for as long as its `with` block.

    `lines` go into its `location`. `home` is its folder, `socket` the way in. Raises `UsageError`
    where there is no nginx, or where it does not start, with the reason it gave.
    """

    def __init__(self, url: str, lines: tuple[str, ...] = ()) -> None:
        self.home = Path()
        self._url, self._lines = url, lines
        self._left = ExitStack()

    @staticmethod
    def program() -> str | None:
        """Where nginx is installed; None where it is not, or where it can't listen here."""
        if not hasattr(socket, "AF_UNIX"):
            return None
        return shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")

    @staticmethod
    def version() -> str:
        """Such as "nginx/1.22.1"; "" where there is none."""
        program = Nginx.program()
        if program is None:
            return ""
        said = subprocess.run([program, "-v"], capture_output=True, text=True, check=False)
        return said.stderr.strip().rpartition(" ")[2]

    @property
    def socket(self) -> str:
        """The path of the Unix socket that it listens on."""
        return str(self.home / "socket")

    def __enter__(self) -> Self:
        program = self.program()
        if program is None:
            raise UsageError("there is no nginx here")
        with ExitStack() as left:
            self.home = Path(tempfile.mkdtemp(prefix="nginx-"))
            left.callback(shutil.rmtree, self.home, ignore_errors=True)
            place, log = self.home / "conf", self.home / "log"
            place.write_text(written(self._lines, str(self.home), self._url))
            process = subprocess.Popen(
                [program, "-p", self.home, "-c", place, "-e", log],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            left.callback(_ended, process)
            self._wait(process, log)
            self._left = left.pop_all()
        return self

    def _wait(self, process: subprocess.Popen[bytes], log: Path) -> None:
        until = time.monotonic() + PATIENCE
        while not listens(self.socket):
            if process.poll() is not None or time.monotonic() > until:
                why = log.read_text(errors="replace").strip() if log.exists() else ""
                raise UsageError(f"nginx does not start: {why or 'it says nothing'}")
            time.sleep(0.01)

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, at: TracebackType | None
    ) -> None:
        self._left.close()


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def listens(path: str) -> bool:
    """Whether somebody listens on a Unix socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(path) == 0
