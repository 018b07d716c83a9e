"""The report card: every fault, through every real SDK that is installed, over real sockets.

    card = run_card()
    card.frame()       # a pandas DataFrame, a row for each fault and client
    card.heat_map()    # the same as a figure
    card.grid("ping")  # some of its faults, a row for each client

One fault server answers all of it: the model's name in the request says which fault is wanted.
Every request is tried once, with a short timeout, and the whole run is bounded. Nothing about an
SDK is written down here, so a newer one gets its own card; the versions are stamped on it.

Read next: `card_faults.py` (what goes wrong), `clients.py` (who reads it), `card_cell.py` (the
verdict).
"""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AsyncExitStack, ExitStack
from functools import cache
from importlib import import_module
from typing import Any

import msgspec

from streamlab.analysis.figures.card import Column, Square, heat_map
from streamlab.analysis.figures.drawing import Drawing
from streamlab.analysis.judge import judge
from streamlab.consumer.attempt import State
from streamlab.errors import UsageError
from streamlab.streams.answer import Answer, Asked
from streamlab.streams.error_shapes import wire_of
from streamlab.streams.sdks import SDKS, opened, opened_async, versions
from streamlab.streams.server import FaultServer
from streamlab.study.card_cell import Cell, cell
from streamlab.study.card_faults import CARD_FAULTS
from streamlab.study.card_streams import GOOD
from streamlab.study.clients import WAYS, Got, Way, ask, ask_async, ask_bare

__all__ = ["Card", "answer", "measured", "run_card"]

#: Seconds without a byte after which a client gives up: where silence is the fault, and elsewhere.
SILENCE, PATIENCE = 1.0, 10.0

#: Seconds after which whoever has not come to an end is left behind; requests at a time.
LIMIT, AT_ONCE = 60.0, 12

#: Is told how many requests are over, of how many.
Watch = Callable[[int, int], object]

#: A fault and a way of reading.
Pair = tuple[str, str]


class Card(msgspec.Struct, frozen=True):
    """A filled report card."""

    cells: tuple[Cell, ...]  #: by fault, then by client, in the catalogue's order
    versions: dict[str, str]
    missing: tuple[str, ...] = ()  #: a line for each SDK that is not installed
    asynchronous: bool = False

    @property
    def faults(self) -> tuple[str, ...]:
        """The ids of its faults."""
        return tuple(dict.fromkeys(each.fault for each in self.cells))

    @property
    def clients(self) -> tuple[str, ...]:
        """The ids of its clients."""
        return tuple(dict.fromkeys(each.client for each in self.cells))

    def at(self, fault: str, client: str) -> Cell:
        """One cell."""
        for each in self.cells:
            if (each.fault, each.client) == (fault, client):
                return each
        raise UsageError(f"there is no {fault!r} by {client!r} on this card")

    def stamp(self) -> str:
        """Everything that was measured, with its version, in one line."""
        return ", ".join(f"{name} {version}" for name, version in self.versions.items() if version)

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each cell."""
        return [
            {
                "fault": each.fault,
                "says": CARD_FAULTS[each.fault].says,
                "client": each.client,
                "sdk": WAYS[each.client].sdk,
                "version": self.versions[WAYS[each.client].sdk],
                "how": WAYS[each.client].how,
                "wire": each.wire,
                "verdict": each.verdict,
                "saw": each.saw,
                "danger": each.danger,
                "streamlab": each.streamlab,
                "message": each.message,
            }
            for each in self.cells
        ]

    def frame(self) -> Any:
        """A pandas DataFrame with a row for each cell."""
        pandas: Any = import_module("pandas")  # it ships no types
        return pandas.DataFrame(self.rows())

    def grid(self, *faults: str) -> Any:
        """Some of its faults as a pandas DataFrame of words: a row for each client."""
        pandas: Any = import_module("pandas")
        columns = {
            fault: [self.at(fault, client).marked for client in self.clients]
            for fault in faults or self.faults
        }
        return pandas.DataFrame(columns, index=self.clients)

    def heat_map(self, *, versions: bool = True) -> Drawing:
        """The card as a figure; without the versions it is the same on every machine."""
        columns = [
            Column(name, f"{sdk} {self.versions[sdk]}" if versions else sdk)
            for name, sdk in ((name, WAYS[name].sdk) for name in self.clients)
        ]
        squares = {(each.fault, each.client): _square(each) for each in self.cells}
        note = f"Measured with {self.stamp()}." if versions else ""
        return heat_map("What each SDK makes of each fault", columns, self.faults, squares, note)

    def __repr__(self) -> str:
        danger = sum(each.danger for each in self.cells)
        told = f"{len(self.faults)} faults by {len(self.clients)} clients"
        return f"<Card: {told}; a wrong call to act on in {danger}; {self.stamp()}>"


def _square(each: Cell) -> Square:
    """A cell as the figure shows it; where a client is content and streamlab is not, it says so."""
    if each.verdict == "right":
        doubts = each.streamlab != State.VALIDATED_PROPOSAL
        return Square("right", "right", f"streamlab: {each.streamlab}" if doubts else "")
    if each.danger:
        return Square("danger", "wrong call", each.word)
    first, _, rest = each.verdict.partition(" ")
    word = first.rstrip(",")
    return Square(each.kind, word, each.word if each.saw else rest)


@cache
def measured() -> Card:
    """The whole card, filled once in this process: some seconds."""
    return run_card()


def answer(client: str, fault: str) -> Got:
    """What that client hands to a program that has no net: it raises whatever the SDK raises.

    Raises `UsageError` for a name that is none.
    """
    way, name = _named(client, WAYS, "client"), _named(fault, CARD_FAULTS, "fault").id
    sdk = SDKS[way.sdk]
    with FaultServer(_answer) as server, opened(sdk, server.url, retries=0) as opened_client:
        return ask_bare(way, opened_client, name, _seconds(name))


def run_card(
    faults: Sequence[str] | None = None,
    clients: Sequence[str] | None = None,
    *,
    asynchronous: bool = False,
    watch: Watch = lambda done, of: None,
) -> Card:
    """Put faults to clients, all of them unless some are named, and return the card.

    An SDK that is not installed is left out, with a line in `missing`. Raises `UsageError` for a
    name that is none.
    """
    chosen = [_named(fault, CARD_FAULTS, "fault") for fault in dict.fromkeys(faults or CARD_FAULTS)]
    ways = [_named(client, WAYS, "client") for client in dict.fromkeys(clients or WAYS)]
    wanted = dict.fromkeys(way.sdk for way in ways)
    present = [way for way in ways if SDKS[way.sdk].installed]
    pairs = [(fault.id, way.id) for fault in chosen for way in present]
    asked = [pair for pair in pairs if CARD_FAULTS[pair[0]].sent(GOOD[WAYS[pair[1]].wire])]
    run = _async_run if asynchronous else _run
    got = run(asked, watch) if asked else {}
    states = _states(asked)
    cells = tuple(_cell(pair, pair in states, got.get(pair), states) for pair in pairs)
    missing = tuple(SDKS[sdk].missing for sdk in wanted if not SDKS[sdk].installed)
    return Card(cells, versions() | {"Python": platform.python_version()}, missing, asynchronous)


def _named(name: str, known: dict[str, Any], what: str) -> Any:
    if name not in known:
        raise UsageError(f"there is no {what} {name!r}; there is {', '.join(known)}")
    return known[name]


def _cell(pair: Pair, there: bool, got: Got | None, states: dict[Pair, str]) -> Cell:
    fault, client = pair
    wire = WAYS[client].wire
    if not there:
        return Cell(fault, client, wire, "n/a", "", False, "")
    return cell(fault, client, wire, got, states[pair])


def _states(pairs: Iterable[Pair]) -> dict[Pair, str]:
    """Streamlab's own verdict on the bytes of each pair; the same for all who read one wire."""
    found: dict[Pair, str] = {}
    by_wire: dict[Pair, str] = {}
    for fault, client in pairs:
        wire = WAYS[client].wire
        sent = CARD_FAULTS[fault].sent(GOOD[wire])
        if sent is not None and (fault, wire) not in by_wire:
            by_wire[fault, wire] = judge(sent.recording(wire)).state.value
        found[fault, client] = by_wire[fault, wire]
    return found


# --- Running --------------------------------------------------------------------------------------


def _answer(asked: Asked) -> Answer:
    """The fault that the model's name asks for, on the wire of the path."""
    sent = CARD_FAULTS[asked.model].sent(GOOD[wire_of(asked.path)])
    if sent is None:
        raise UsageError(f"{asked.model} does not exist on {wire_of(asked.path)}")
    return sent.answer()


def _seconds(fault: str) -> float:
    return SILENCE if fault == "timeout" else PATIENCE


def _sdks(pairs: Iterable[Pair]) -> list[str]:
    return list(dict.fromkeys(WAYS[client].sdk for _, client in pairs))


def _run(pairs: Sequence[Pair], watch: Watch) -> dict[Pair, Got]:
    """Ask for each pair in one of a few threads; who comes to no end in time is left out."""
    got: dict[Pair, Got] = {}
    pool = ThreadPoolExecutor(AT_ONCE, "streamlab report card")
    with FaultServer(_answer) as server, ExitStack() as stack:
        clients = {
            sdk: stack.enter_context(opened(SDKS[sdk], server.url, retries=0))
            for sdk in _sdks(pairs)
        }
        futures: dict[Future[Got], Pair] = {}
        for fault, client in pairs:
            way = WAYS[client]
            future = pool.submit(ask, way, clients[way.sdk], fault, _seconds(fault))
            futures[future] = (fault, client)
        try:
            for done, future in enumerate(as_completed(futures, LIMIT), 1):
                got[futures[future]] = future.result()
                watch(done, len(pairs))
        except TimeoutError:
            pass
        finally:
            server.stop()  # whoever still reads is hung up on, so every thread comes to its end
            pool.shutdown(cancel_futures=True)
    return got


def _async_run(pairs: Sequence[Pair], watch: Watch) -> dict[Pair, Got]:
    """The same with the async clients, in a loop of its own: a notebook has one running already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, _asked_async(pairs, watch)).result()


def _quiet(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Say nothing of a generator that an SDK left half closed: no cell of the card is about it."""
    if "asyncgen" not in context:
        loop.default_exception_handler(context)


async def _asked_async(pairs: Sequence[Pair], watch: Watch) -> dict[Pair, Got]:
    asyncio.get_running_loop().set_exception_handler(_quiet)
    got: dict[Pair, Got] = {}
    free = asyncio.Semaphore(AT_ONCE)

    async def one(pair: Pair, way: Way, client: Any) -> None:
        async with free:
            got[pair] = await ask_async(way, client, pair[0], _seconds(pair[0]))
        watch(len(got), len(pairs))

    with FaultServer(_answer) as server:
        async with AsyncExitStack() as stack:
            clients = {
                sdk: await stack.enter_async_context(opened_async(SDKS[sdk], server.url, retries=0))
                for sdk in _sdks(pairs)
            }
            tasks = [
                asyncio.create_task(one(pair, WAYS[pair[1]], clients[WAYS[pair[1]].sdk]))
                for pair in pairs
            ]
            _, late = await asyncio.wait(tasks, timeout=LIMIT)
            for task in late:
                task.cancel()
    return got
