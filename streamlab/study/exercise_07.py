"""Lesson 07's exercise: run the calls of one answer, and make the message that answers them.

A learner's function is async, and is given calls (as a request holds them) and tools. The cases
tell the usual mistakes apart: one tool after the other, results in the order in which they came,
an exception that takes its neighbours along. Nothing here waits for a clock: a tool that needs
another one looks a hundred times whether that one has come, and then says that it was alone.

Read next: `questions.py`, which checks an answer; `../consumer/toolloop.py`, for the whole loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import Any

from streamlab.study.tasks import Case, Exercise, Wrong
from streamlab.study.turns import settled

__all__ = ["EXERCISES", "run_all"]

JSON = dict[str, Any]
Tools = dict[str, Callable[[JSON], Awaitable[str]]]

#: How often a tool looks for the one that it needs.
LOOKS = 100


async def run_all(calls: list[JSON], tools: Tools) -> JSON:
    """The solution: side by side, in order, and an error is a result."""
    asked = [tools[call["name"]](call["input"]) for call in calls]
    came = await asyncio.gather(*asked, return_exceptions=True)
    return _message([_block(call, value) for call, value in zip(calls, came, strict=True)])


def _block(call: JSON, came: Any) -> JSON:
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": str(came)}
    return {**block, "is_error": True} if isinstance(came, Exception) else block


def _message(blocks: list[JSON]) -> JSON:
    return {"role": "user", "content": blocks}


# --- The cases ------------------------------------------------------------------------------------


def _tools() -> Tools:
    """The tools of one run: they know of each other, so each run has its own."""
    met: set[str] = set()

    async def look(input: JSON) -> str:
        return f"{input['item']} ok"

    async def slow(input: JSON) -> str:
        for _ in range(LOOKS):
            await asyncio.sleep(0)
        return "slow"

    async def meet(input: JSON) -> str:
        met.add(input["me"])
        for _ in range(LOOKS):
            if len(met) > 1:
                return "met"
            await asyncio.sleep(0)
        return "alone"

    async def lose(input: JSON) -> str:
        raise LookupError("gone")

    return {"look": look, "slow": slow, "meet": meet, "lose": lose}


def _call(id: str, name: str, **input: str) -> JSON:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


ONE, TWO, SAME = "one call", "two calls", "the same call twice"
LAST, MEET = "the first is done last", "each waits for the other"
FAILS, GOES_ON = "a tool raises", "a tool raises while another one runs"

#: (name, calls, what each comes to, what is said to who gets it wrong)
_CASES: tuple[tuple[str, list[JSON], list[str], str], ...] = (
    (
        ONE,
        [_call("a", "look", item="W-7")],
        ["W-7 ok"],
        "One user message, and in it a tool_result with the id of the call and the tool's text.",
    ),
    (
        TWO,
        [_call("a", "look", item="W-7"), _call("b", "look", item="W-8")],
        ["W-7 ok", "W-8 ok"],
        "Both results belong into one message: a call without its result there is refused.",
    ),
    (
        SAME,
        [_call("a", "look", item="W-7"), _call("b", "look", item="W-7")],
        ["W-7 ok", "W-7 ok"],
        "Two calls may be equal but for their ids, and each needs a result of its own.",
    ),
    (
        LAST,
        [_call("a", "slow"), _call("b", "look", item="W-8")],
        ["slow", "W-8 ok"],
        "The results are in the order of the calls, whichever tool was done first.",
    ),
    (
        MEET,
        [_call("a", "meet", me="a"), _call("b", "meet", me="b")],
        ["met", "met"],
        "Each tool waits until the other has begun. Run one after the other, the first is alone.",
    ),
    (
        FAILS,
        [_call("a", "lose")],
        ["!gone"],
        "An exception is a result: its text, and is_error. Then the model can try another way.",
    ),
    (
        GOES_ON,
        [_call("a", "lose"), _call("b", "slow")],
        ["!gone", "slow"],
        "One tool failed, and its neighbour did not. It runs to its end, and gets its own result.",
    ),
)


def _expected(calls: list[JSON], texts: list[str]) -> JSON:
    came = [LookupError(text[1:]) if text.startswith("!") else text for text in texts]
    return _message([_block(call, value) for call, value in zip(calls, came, strict=True)])


def _anew() -> Tools:
    """Tools that forget, with each answer that is checked, whom they have met."""
    here: dict[str, Any] = {"loop": None}

    def named(name: str) -> Callable[[JSON], Awaitable[str]]:
        async def tool(input: JSON) -> str:
            loop = asyncio.get_running_loop()  # each check of an answer has one of its own
            if here["loop"] is not loop:
                here.update(loop=loop, tools=_tools())
            text: str = await here["tools"][name](input)
            return text

        return tool

    return {name: named(name) for name in _tools()}


def _cases() -> tuple[Case, ...]:
    return tuple(
        Case(name, (deepcopy(calls), _anew()), _expected(calls, texts), why)
        for name, calls, texts, why in _CASES
    )


# --- Known mistakes -------------------------------------------------------------------------------


def _each(
    run: Callable[[list[JSON], Tools], Awaitable[list[JSON]]],
) -> Callable[..., Any]:
    async def answer(calls: list[JSON], tools: Tools) -> JSON:
        return _message(await run(calls, tools))

    return settled(answer)


async def _attempted(call: JSON, tools: Tools) -> JSON:
    try:
        return _block(call, await tools[call["name"]](call["input"]))
    except Exception as why:
        return _block(call, why)


async def _in_turn(calls: list[JSON], tools: Tools) -> list[JSON]:
    return [await _attempted(call, tools) for call in calls]


async def _as_they_come(calls: list[JSON], tools: Tools) -> list[JSON]:
    blocks: list[JSON] = []

    async def one(call: JSON) -> None:
        blocks.append(await _attempted(call, tools))

    await asyncio.gather(*map(one, calls))
    return blocks


async def _no_net(calls: list[JSON], tools: Tools) -> list[JSON]:
    came = await asyncio.gather(*(tools[c["name"]](c["input"]) for c in calls))
    return [_block(call, value) for call, value in zip(calls, came, strict=True)]


async def _all_fail(calls: list[JSON], tools: Tools) -> list[JSON]:
    try:
        return await _no_net(calls, tools)
    except Exception as why:
        return [_block(call, why) for call in calls]


async def _group(calls: list[JSON], tools: Tools) -> list[JSON]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_awaited(tools[c["name"]](c["input"]))) for c in calls]
    return [_block(call, task.result()) for call, task in zip(calls, tasks, strict=True)]


async def _awaited(value: Awaitable[str]) -> str:
    return await value


async def _left_out(calls: list[JSON], tools: Tools) -> list[JSON]:
    blocks = await asyncio.gather(*(_attempted(call, tools) for call in calls))
    return [block for block in blocks if "is_error" not in block]


async def _unmarked(calls: list[JSON], tools: Tools) -> list[JSON]:
    blocks = await asyncio.gather(*(_attempted(call, tools) for call in calls))
    return [{k: v for k, v in block.items() if k != "is_error"} for block in blocks]


async def _by_name(calls: list[JSON], tools: Tools) -> list[JSON]:
    only = {(call["name"], str(call["input"])): call for call in calls}
    return await asyncio.gather(*(_attempted(call, tools) for call in only.values()))


async def _last_only(calls: list[JSON], tools: Tools) -> list[JSON]:
    blocks = await asyncio.gather(*(_attempted(call, tools) for call in calls))
    return blocks[-1:]


async def _messages(calls: list[JSON], tools: Tools) -> Any:
    blocks = await asyncio.gather(*(_attempted(call, tools) for call in calls))
    return [_message([block]) for block in blocks]


async def _blocks(calls: list[JSON], tools: Tools) -> Any:
    return await asyncio.gather(*(_attempted(call, tools) for call in calls))


async def _as_the_model(calls: list[JSON], tools: Tools) -> JSON:
    blocks = await asyncio.gather(*(_attempted(call, tools) for call in calls))
    return {"role": "assistant", "content": blocks}


async def _nothing(calls: list[JSON], tools: Tools) -> None:
    await asyncio.gather(*(_attempted(call, tools) for call in calls))


def _one_each(calls: list[JSON], tools: Tools) -> Any:
    came = settled(_messages)(calls, tools)
    return came[0] if len(came) == 1 else came


EXERCISES = (
    Exercise(
        "07-ex",
        _cases,
        settled(run_all),
        (
            Wrong("it returns nothing", settled(_nothing), ONE),
            Wrong("the blocks without a message", settled(_blocks), ONE),
            Wrong("as the model's own words", settled(_as_the_model), ONE),
            Wrong("a message for each result", _one_each, TWO),
            Wrong("only the last result", _each(_last_only), TWO),
            Wrong("equal calls are run once", _each(_by_name), SAME),
            Wrong("in the order in which they came", _each(_as_they_come), LAST),
            Wrong("one after the other", _each(_in_turn), MEET),
            Wrong("an exception ends it", _each(_no_net), FAILS),
            Wrong("what failed has no result", _each(_left_out), FAILS),
            Wrong("the error looks like a result", _each(_unmarked), FAILS),
            Wrong("a task group ends all with one", _each(_group), FAILS),
            Wrong("one error is everybody's", _each(_all_fail), GOES_ON),
        ),
    ),
)
