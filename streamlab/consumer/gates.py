"""The gates: everything that must hold before a complete answer becomes a proposal.

Each gate looks at one thing, in this order, and reports what it saw, passed or not:

    completion, stop reason, tool, parse, schema, business rule, authorisation

A gate for which the application gave nothing to check against says that it was not checked. The
first one that does not pass decides. Some hold the answer (it is whole, but not acceptable
here), some make it invalid (it contradicts itself or our rules). Passing them all is still no
effect: the commit is a separate step, and asks for authorisation again.

The schema gate uses the `jsonschema` library, so every keyword of a tool's schema counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

import msgspec

from streamlab.consumer.attempt import Attempt, Input, advance
from streamlab.consumer.turn import Segment, Turn
from streamlab.errors import UsageError

__all__ = ["CHAT", "EFFECT", "GATES", "Policy", "Proposal", "Verdict", "judge_turn", "settle"]

Tools = Mapping[str, Mapping[str, Any]]


class Proposal(msgspec.Struct, frozen=True):
    """A complete, parsed tool request that has passed every gate; still no effect."""

    call_id: str
    tool: str
    input: Any  #: an object; a text for a tool whose input is free text


class Verdict(msgspec.Struct, frozen=True):
    """What one gate found."""

    gate: str
    passed: bool | None  #: None: the policy gave nothing to check against, so nothing was claimed
    saw: str
    outcome: Input | None = None  #: where it did not pass: GATES_HELD or GATES_FAILED


class Policy(msgspec.Struct, frozen=True):
    """What an application accepts.

    `tools` maps a permitted tool's name to the JSON Schema of its input. `rule` and `authorise` are
    given one call, and return "" or why not. What is None is not checked, and its gate says so.
    """

    accept: frozenset[str]
    tools: Tools | None = None
    rule: Callable[[Proposal], str] | None = None
    authorise: Callable[[Proposal], str] | None = None

    def __post_init__(self) -> None:
        for name, schema in (self.tools or {}).items():
            _check_schema(name, schema)


#: Accepts what a tool proposal needs. A text answer that ends well has nothing to propose.
EFFECT = Policy(accept=frozenset({"tool_use", "end_turn", "stop_sequence"}))

#: Accepts a text answer; an answer that wants to act is held.
CHAT = Policy(accept=frozenset({"end_turn", "stop_sequence"}))

HELD, FAILED = Input.GATES_HELD, Input.GATES_FAILED
PASSED, UNCHECKED = True, None

#: What a gate saw, and what that means.
Found = tuple[str, bool | Input | None]


def _completion(turn: Turn, policy: Policy) -> Found:
    if turn.complete:
        return "every block stopped, a stop reason, the final marker", PASSED
    broken = next((p.message for p in turn.facts.problems if p.severity == "error"), "")
    missing = "the final marker never came"
    if turn.facts.completed:  # whoever said so has not seen the whole sequence
        missing = "a block never stopped" if turn.open else "there is no stop reason"
    return broken or missing, FAILED


def _stop_reason(turn: Turn, policy: Policy) -> Found:
    reason = turn.facts.stop_reason
    if reason == "tool_use" and not turn.calls:
        return "tool_use, but there is no call to run", HELD
    if reason in policy.accept:
        return f"{reason}, which is accepted here", PASSED
    said = turn.facts.raw_stop_reason
    vendor = f" (the vendor says {said!r})" if said != reason else ""
    return f"{reason}{vendor}; accepted here: {', '.join(sorted(policy.accept))}", HELD


def _tool(turn: Turn, policy: Policy) -> Found:
    if policy.tools is None:
        return "no list of tools is given: any is taken", UNCHECKED
    names = [call.start.name for call in turn.calls]
    stranger = next((name for name in names if name not in policy.tools), None)
    if stranger is not None:
        return f"{stranger!r} is not permitted; permitted: {', '.join(policy.tools)}", HELD
    return f"{', '.join(names)}: permitted", PASSED


def _parse(turn: Turn, policy: Policy) -> Found:
    for call in turn.calls:
        if call.status != "ready":
            why = call.error or "its block never stopped"
            return f"the input of {call.start.name}: {why}", FAILED
        if not call.start.name:
            return "a call without a tool's name", FAILED
    free = ", or free text" if any(call.start.form == "text" for call in turn.calls) else ""
    return f"each input is one whole JSON object{free}", PASSED


def _schema(turn: Turn, policy: Policy) -> Found:
    if policy.tools is None:
        return "no schema is given", UNCHECKED
    for call in turn.calls:
        wrong = schema_error(policy.tools[call.start.name], call.input)
        if wrong:
            nothing = " (no input was received)" if call.input == {} else ""
            return f"the input of {call.start.name}: {wrong}{nothing}", FAILED
    return "each input fits its tool's schema", PASSED


def _rule(turn: Turn, policy: Policy) -> Found:
    if policy.rule is None:
        return "no business rule is given", UNCHECKED
    why = _objection(turn, policy.rule)
    return (why, FAILED) if why else ("the business rule holds", PASSED)


def _authorisation(turn: Turn, policy: Policy) -> Found:
    if policy.authorise is None:
        return "nobody was asked whether this actor may", UNCHECKED
    why = _objection(turn, policy.authorise)
    return (why, HELD) if why else ("this actor may do this to this item, now", PASSED)


def _objection(turn: Turn, ask: Callable[[Proposal], str]) -> str:
    """The first objection to a call of the turn; "" where there is none."""
    return next(filter(None, map(ask, proposals(turn))), "")


GATES: dict[str, Callable[[Turn, Policy], Found]] = {
    "completion": _completion,
    "stop_reason": _stop_reason,
    "tool": _tool,
    "parse": _parse,
    "schema": _schema,
    "business_rule": _rule,
    "authorisation": _authorisation,
}

#: The gates that look at a call; an answer without one has only the others to pass.
CALL_GATES = frozenset({"tool", "parse", "schema", "business_rule", "authorisation"})


def judge_turn(turn: Turn, policy: Policy = EFFECT) -> tuple[Verdict, ...]:
    """What each gate saw, up to and with the first that does not pass."""
    verdicts: list[Verdict] = []
    calls = turn.calls
    for name, gate in GATES.items():
        if name in CALL_GATES and not calls:
            continue
        saw, found = gate(turn, policy)
        if isinstance(found, Input):
            verdicts.append(Verdict(name, False, saw, found))
            break
        verdicts.append(Verdict(name, found, saw))
    return tuple(verdicts)


def settle(attempt: Attempt, turn: Turn, verdicts: tuple[Verdict, ...]) -> Attempt:
    """The attempt after its gates."""
    last = verdicts[-1]
    if last.outcome is not None:
        return advance(attempt, last.outcome, f"{last.gate.replace('_', ' ')}: {last.saw}")
    if not turn.calls:
        return advance(attempt, Input.NOTHING_PROPOSED)
    unchecked = ", ".join(v.gate.replace("_", " ") for v in verdicts if v.passed is None)
    passed = f"no gate objects (not checked: {unchecked})" if unchecked else "every gate passed"
    return advance(attempt, Input.GATES_PASSED, f"{passed}; nothing has been done yet")


def proposals(turn: Turn) -> tuple[Proposal, ...]:
    """The calls of a turn whose gates have passed."""
    return tuple(map(_proposal, turn.calls))


def schema_error(schema: Mapping[str, Any], value: Any) -> str:
    """Why a value does not fit a JSON Schema: its place and the reason; "" where it fits."""
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    validator = validator_for(schema)(schema, registry=Registry())  # never fetches a reference
    try:
        wrong = next(validator.iter_errors(value), None)
    except (RecursionError, OverflowError) as why:  # a schema that refers to itself; 10**400 / 0.5
        return f"it cannot be checked: {why}"
    except Unresolvable as why:
        raise UsageError(f"the schema refers to something that it does not hold: {why}") from None
    return f"at {wrong.json_path}: {wrong.message[:300]}" if wrong else ""


def _check_schema(name: str, schema: Any) -> None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    if not isinstance(schema, (Mapping, bool)):
        raise UsageError(f"the schema of tool {name!r} is a {type(schema).__name__}, not an object")
    draft = schema.get("$schema") if isinstance(schema, Mapping) else None
    known = isinstance(draft, str) and validator_for({"$schema": draft}, default=None)
    if draft is not None and not known:
        raise UsageError(f"the schema of tool {name!r} follows {draft!r}, a draft not known here")
    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as why:
        raise UsageError(f"the schema of tool {name!r} is none: {why.message}") from None
    except RecursionError:
        raise UsageError(f"the schema of tool {name!r} is nested too deeply") from None


def _proposal(call: Segment) -> Proposal:
    """A call as a value of its own: what is done to it later changes no turn."""
    return Proposal(call.start.call_id, call.start.name, deepcopy(call.input))
