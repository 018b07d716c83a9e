"""What a scenario is: a script with a name and one sentence, and the table that they all are in.

Read next: `scenarios.py`, which fills the table.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

import msgspec

from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams.recording import Recording
from streamlab.streams.script import Script

__all__ = ["SCENARIOS", "Scenario", "enter", "named"]


class Scenario(msgspec.Struct, frozen=True):
    """A script with a name, and what comes of it."""

    name: str
    says: str  #: one sentence
    make: Callable[[], Script]
    state: State  #: where its attempt ends, under the script's own policy
    after: int | None = None  #: the frame after which `state` holds; None: at the end
    requirement: str = ""  #: the acceptance sequence that it is, such as "R3"

    @property
    def script(self) -> Script:
        """The script itself."""
        return self.make()

    @property
    def recording(self) -> Recording:
        """Its stream alone, as `FaultServer` plays it."""
        return self.script.recording


#: Every scenario by its name, in the order of `scenarios.py`.
SCENARIOS: dict[str, Scenario] = {}


def named(name: str) -> Scenario:
    """The scenario of this name."""
    if name not in SCENARIOS:
        alike = ", ".join(get_close_matches(name, SCENARIOS, cutoff=0.5))
        like = f"like it are {alike}" if alike else "SCENARIOS has them all"
        raise UsageError(f"no scenario {name[:80]!r}; {like}")
    return SCENARIOS[name]


def enter(
    name: str,
    says: str,
    make: Callable[[], Script],
    state: State,
    after: int | None = None,
    requirement: str = "",
) -> Callable[[], Script]:
    """Put a scenario into the table; the function that makes its script is `scenarios.<name>`."""
    code = f"scenarios.{name}()"

    def script() -> Script:
        return msgspec.structs.replace(make(), code=code)

    script.__name__ = script.__qualname__ = name
    script.__doc__ = says
    SCENARIOS[name] = Scenario(name, says, script, state, after, requirement)
    return script
