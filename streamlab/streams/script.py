"""The script: a recording, and what happens along it, as one value that code can name.

Its methods break the recording on purpose, or say what else happens to the attempt: a cancellation,
a second delivery, a commit. Each gives a new script, and remembers the line of code that made it,
so a view can print what its button did.

Read next: `scenarios.py`, the scripts that have names; `analysis/trace.py`, which folds one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from streamlab.consumer.gates import EFFECT, Policy
from streamlab.errors import UsageError
from streamlab.streams import faults
from streamlab.streams.recording import Recording

__all__ = ["Control", "Script"]

replace = msgspec.structs.replace

Action = Literal["cancel", "redeliver", "late", "commit", "reconcile"]


class Control(msgspec.Struct, frozen=True):
    """Something that happens to an attempt beside its stream."""

    action: Action
    after: int | None = None  #: frame number; None: after everything
    frame: int | None = None  #: which frame is delivered again
    lost: bool = False  #: of a commit: its effect happens, and the answer gets lost


class Script(msgspec.Struct, frozen=True):
    """A recording and what happens along it; each method gives a new script."""

    recording: Recording
    controls: tuple[Control, ...] = ()
    policy: Policy = EFFECT
    prompt: str = "…"  #: the user's message, for the view of what the conversation keeps
    code: str = "script"
    injected: frozenset[int] = frozenset()  #: numbers of the frames that a fault put in
    before: Script | None = None  #: the script without the last change

    def disconnect(self, after: int, ending: str = "eof") -> Script:
        """Let the transport stop after a frame: "eof", "cut", "reset" or "timeout"."""
        return self._broken(faults.disconnect, after=after, ending=ending)

    def inject(self, fault: Callable[..., Recording], **given: Any) -> Script:
        """Break the recording by any of `faults`: `script.inject(faults.duplicate, frame=3)`."""
        if getattr(faults, fault.__name__, None) is not fault:
            raise UsageError(f"{fault.__name__} is none of `faults`: {', '.join(faults.__all__)}")
        call = f"inject(faults.{fault.__name__}{''.join(f', {k}={v!r}' for k, v in given.items())})"
        return self._changed(call, fault(self.recording, **given))

    def cancel(self, after: int | Literal["gates"] | None = None, hang_up: bool = True) -> Script:
        """Cancel after a frame; after the gates, before anything else; or after everything.

        Who does not hang up goes on to receive what was on its way.
        """
        if after is None:
            return self._controlled("cancel()", Control("cancel"))
        if after == "gates":
            first = (Control("cancel"), *self.controls)
            return self._next("cancel(after='gates')", controls=first)
        if not hang_up:
            self._check(after)
            call = f"cancel(after={after}, hang_up=False)"
            return self._controlled(call, Control("cancel", after))
        cut = faults.disconnect(self.recording, after, "cancelled")
        return self._changed(f"cancel(after={after})", cut)

    def error(self, after: int, type: str = "overloaded_error") -> Script:
        """Let the provider report an error, after HTTP has long said 200."""
        return self._broken(faults.error, after=after, type=type)

    def token_limit(self, after: int) -> Script:
        """Let the answer run into its token limit: a whole sequence, cut short by `max_tokens`."""
        return self._broken(faults.token_limit, after=after)

    def unknown(self, after: int) -> Script:
        """Let an event come that is not known here."""
        return self._broken(faults.unknown, after=after)

    def skip(self, frame: int) -> Script:
        """Lose a frame."""
        return self._broken(faults.skip, frame=frame)

    def insert(self, after: int, frame: bytes) -> Script:
        """Put a frame in, given as the bytes of its block."""
        return self._broken(faults.insert, after=after, frame=frame)

    def redeliver(self, frame: int, after: int | None = None) -> Script:
        """Hand the consumer one frame's envelope again, under the same delivery identity."""
        place = frame if after is None else after
        call = f"redeliver(frame={frame}" + (")" if after is None else f", after={after})")
        self._check(frame, place)
        if place < frame:
            raise UsageError(f"after={place}: frame {frame} can be repeated from after={frame} on")
        return self._controlled(call, Control("redeliver", place, frame))

    def late(self, after: int | None = None) -> Script:
        """Let a completion callback come too late: this attempt's own, after everything.

        With a place it comes while this attempt is under way, so it is the one before that it
        belongs to.
        """
        call = "late()" if after is None else f"late(after={after})"
        if after is not None:
            self._check(after)
        return self._controlled(call, Control("late", after))

    def commit(self, lost: bool = False) -> Script:
        """Commit, after everything else; `lost`: the effect happens, and its answer gets lost."""
        return self._controlled(
            f"commit({'lost=True' if lost else ''})", Control("commit", lost=lost)
        )

    def reconcile(self) -> Script:
        """Ask what became of the effect, after everything else."""
        return self._controlled("reconcile()", Control("reconcile"))

    @property
    def frames(self) -> int:
        """How many frames the recording has."""
        return len(faults.frames(self.recording))

    def _check(self, *numbers: int) -> None:
        for number in numbers:
            if not isinstance(number, int) or not 0 < number <= self.frames:
                raise UsageError(f"frame {number}: this script has frames 1 to {self.frames}")

    def _broken(self, fault: Callable[..., Recording], **given: Any) -> Script:
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return self._changed(f"{fault.__name__}({words})", fault(self.recording, **given))

    def _changed(self, call: str, recording: Recording) -> Script:
        edit = _Edit.between(self.recording, recording)
        kept = {edit.moved(number) for number in self.injected} - {None}
        injected = frozenset(number for number in kept | edit.new if number is not None)
        controls = tuple(filter(None, (_moved(control, edit) for control in self.controls)))
        return self._next(call, recording=recording, injected=injected, controls=controls)

    def _controlled(self, call: str, control: Control) -> Script:
        return self._next(call, controls=(*self.controls, control))

    def _next(self, call: str, **changes: Any) -> Script:
        return replace(self, code=f"{self.code}.{call}", before=self, **changes)


class _Edit(msgspec.Struct, frozen=True):
    """What a fault did to a recording's frames: how many it left alone at either end."""

    first: int  #: how many are the same from the first on
    last: int  #: how many from the last back
    before: int  #: how many there were
    after: int

    @staticmethod
    def between(old: Recording, new: Recording) -> _Edit:
        """Compare two recordings, frame by frame."""
        a = [frame.data for frame in faults.frames(old)]
        b = [frame.data for frame in faults.frames(new)]
        pairs = enumerate(zip(a, b, strict=False))
        first = next((n for n, (x, y) in pairs if x != y), min(len(a), len(b)))
        last = 0
        while last < min(len(a), len(b)) - first and a[-1 - last] == b[-1 - last]:
            last += 1
        return _Edit(first, last, len(a), len(b))

    @property
    def new(self) -> set[int]:
        """The numbers of the frames that a fault put in."""
        return set(range(self.first + 1, self.after - self.last + 1))

    def moved(self, frame: int) -> int | None:
        """The number that a frame has now; None where it is gone."""
        if frame <= self.first:
            return frame
        return frame + self.after - self.before if frame > self.before - self.last else None


def _moved(control: Control, edit: _Edit) -> Control | None:
    """A control at the frame that it was put at; None where that frame comes no more."""
    places = {name: getattr(control, name) for name in ("after", "frame")}
    moved = {name: edit.moved(at) for name, at in places.items() if at is not None}
    return None if None in moved.values() else replace(control, **moved)
