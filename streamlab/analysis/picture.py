"""The picture: what a person sees in a terminal who asks what happened in a stream.

The verdict first, then the lanes (`lanes.py`), then the parts, the gates, the problems and the
timings; what has nothing to say is left out. Every text of the recording goes through `visible`,
so nothing in it can move the cursor, open a link or turn the writing round.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from streamlab.analysis.doctor import Diagnosis, Finding, diagnose
from streamlab.analysis.doctor.rules import RULES
from streamlab.analysis.judge import Outcome
from streamlab.analysis.lanes import ASCII, COLOUR, HOW_ENDED, MAX_LANES, UNICODE, Lanes, Signs
from streamlab.analysis.metrics import Metrics
from streamlab.analysis.plain import clipped, counted, seconds, size, visible
from streamlab.analysis.problems import problems_of
from streamlab.analysis.timeline import Timeline
from streamlab.consumer.gates import GATES, Verdict
from streamlab.consumer.turn import Segment
from streamlab.wire.events import Problem

__all__ = ["picture"]

#: Problems that are listed before the rest is only counted.
MAX_PROBLEMS = 12

#: Characters of a segment that are shown, from both of its ends.
MAX_SHOWN = 240

#: Most cells of the first column.
MAX_LABEL = 20

#: Verdicts that are no fault of the answer -> their colour; any other is red.
OF_VERDICT = {
    "whole": "bold green",
    "buffered": "bold yellow",
    "slow": "bold yellow",
    "cut short": "bold yellow",
    "refused": "bold yellow",
    "paused": "bold yellow",
    "held": "bold yellow",
    "cancelled": "bold yellow",
}

#: Rules about the file, or about the list itself: no frame is to blame.
OF_FILE = ("more-streams", "more-problems")

#: Severity -> its article.
ARTICLE = {"error": "an", "warning": "a", "note": "a"}

#: Layer -> whose fault it likely is, in words.
WHOSE = {
    "model": "the model",
    "vendor": "the vendor",
    "gateway": "a gateway or proxy",
    "network": "the network",
    "client": "the client that read it",
    "ours": "our own request or policy",
}


def picture(
    outcome: Outcome,
    timeline: Timeline,
    file: str,
    about: str = "",
    *,
    width: int = 80,
    ascii: bool = False,
) -> RenderableType:
    """Draw one recording, `width` cells wide; `about` is what its own header says of it."""
    signs = ASCII if ascii else UNICODE
    names = [visible(f"{span.id} {span.name}") for span in timeline.spans.values()]
    labels = min(MAX_LABEL, max(map(len, ["proposal", *names[:MAX_LANES]])))
    lanes = Lanes(outcome, timeline, max(width, 40), labels, signs)
    drawn, diagnosis, metrics = lanes.lines(), diagnose(outcome), outcome.metrics
    sections: dict[str, list[RenderableType]] = {
        "": [lanes.legend(), Text()] if drawn else [],
        "states": [_states(outcome, timeline, signs)],
        "parts": [*_parts(outcome)],
        "proposal": [_call(p.tool, p.input) for p in outcome.proposals],
        "gates": _gates(outcome.verdicts, signs),
        "problems": _problems(outcome, diagnosis, signs),
        "timing": [] if metrics is None else _timings(metrics, diagnosis),
        "doctor": [*_doctor(outcome, diagnosis, signs)],
    }
    return Group(
        *_heading(outcome, timeline, file, about, signs),
        *drawn,
        *(_section(name, lines, labels) for name, lines in sections.items() if lines),
    )


def _section(name: str, lines: list[RenderableType], labels: int) -> RenderableType:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(width=labels, no_wrap=True)
    table.add_column(overflow="fold")
    for n, line in enumerate(lines):
        table.add_row(Text("" if n else name, "dim"), line)
    return table


def _heading(
    outcome: Outcome, timeline: Timeline, file: str, about: str, signs: Signs
) -> Iterator[Text]:
    """The file, what it holds, what it is worth, and how it got there."""
    yield Text(visible(file), "bold")
    yield Text(signs.dot.join(filter(None, _facts(outcome, timeline))), "dim")
    if about:
        yield Text(clipped(about, MAX_SHOWN), "dim")
    state = outcome.attempt.state
    yield Text()
    yield Text.assemble((state.value, COLOUR.get(state, "")), f"  {outcome.attempt.said}")
    yield Text(clipped(outcome.attempt.why, MAX_SHOWN))
    yield Text()


def _facts(outcome: Outcome, timeline: Timeline) -> Iterator[str]:
    yield outcome.wire or "no known wire format"
    yield visible(outcome.turn.facts.model)
    yield counted(outcome.frames, "frame")
    yield size(outcome.bytes)
    if timeline.timed:
        yield f"{counted(timeline.reads, 'read')} in {seconds(timeline.end.t)}"
    yield HOW_ENDED[outcome.ending]


def _states(outcome: Outcome, timeline: Timeline, signs: Signs) -> Text:
    """Every state that the attempt was in, and from which frame on."""
    line = Text()
    for change in timeline.states(outcome.attempt):
        state = change.attempt.state
        line.append(f" {signs.arrow} " if line else "").append(state.value, COLOUR.get(state, ""))
        line.append(f" at frame {change.at.frame}" if change.at.frame else "", "dim")
    return line


def _parts(outcome: Outcome) -> list[Text]:
    """The segments, with what they hold."""
    segments = outcome.turn.segments
    return [*map(_part, segments[:MAX_LANES]), *_more(len(segments) - MAX_LANES)]


def _part(segment: Segment) -> Text:
    start = segment.start
    line = Text.assemble(f"{visible(segment.id)} ", (segment.kind, COLOUR[segment.kind]), " ")
    if segment.kind == "tool_call":
        line.append(f"{visible(start.name) or '(no name)'} ", "bold")
        line.append("run by the provider " if start.server else "", "dim")
    elif segment.kind == "other":
        line.append(f"{visible(start.type)} ", "bold")
    if segment.status == "streaming":
        line.append("never stopped ", "bold red")
    elif segment.status == "error":
        line.append("does not parse ", "bold red")
    return line.append(clipped(_content(segment), MAX_SHOWN))


def _content(segment: Segment) -> str:
    if segment.kind == "tool_call":
        return segment.text if segment.input is None else _compact(segment.input)
    if segment.kind == "other":
        return _compact(segment.attached) if segment.attached else ""
    return segment.text


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _call(tool: str, given: dict[str, Any]) -> Text:
    return Text.assemble((visible(tool), "bold"), "(", clipped(_compact(given), MAX_SHOWN), ")")


def _gates(verdicts: tuple[Verdict, ...], signs: Signs) -> list[RenderableType]:
    """What every gate saw; those after the first that objected were not asked."""
    if not verdicts:
        return []
    table = Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for verdict in verdicts:
        sign, style, said = {
            True: (signs.passed, "green", ""),
            None: (signs.unchecked, "yellow", "not checked: "),
            False: (signs.failed, "bold red", ""),
        }[verdict.passed]
        name, saw = verdict.gate.replace("_", " "), clipped(verdict.saw, MAX_SHOWN)
        table.add_row(Text(sign, style), Text(name), Text(f"{said}{saw}"))
    left = [name.replace("_", " ") for name in list(GATES)[len(verdicts) :]]
    if not left or verdicts[-1].passed is not False:
        return [table]
    return [table, Text(f"not asked: {', '.join(left)}", "dim")]


def _problems(outcome: Outcome, diagnosis: Diagnosis, signs: Signs) -> list[RenderableType]:
    """What the wire did that it should not, and where; the places are the doctor's."""
    found = problems_of(outcome)
    places = {(one.rule, one.frame, one.says): one for one in diagnosis.findings}
    shown: list[RenderableType] = []
    for problem in found[:MAX_PROBLEMS]:
        place = places.get((problem.rule, problem.at or None, problem.message))
        shown.append(_problem(problem, _where(place, outcome), signs))
    return [*shown, *_more(len(found) - MAX_PROBLEMS)]


def _problem(problem: Problem, where: str, signs: Signs) -> Text:
    said = where.partition(" (byte ")[0] if "(byte " in problem.message else where
    sign = f"{signs.mark[problem.severity]} {problem.severity}"
    text = f"{said}: {clipped(problem.message, MAX_SHOWN)} "
    return Text.assemble((sign, COLOUR[problem.severity]), text, (f"[{problem.rule}]", "dim"))


def _where(found: Finding | None, outcome: Outcome) -> str:
    """The frame and the byte of a finding; what stands behind the last frame came after it."""
    if found is None or not found.frame or found.rule in OF_FILE:
        return ""
    number, start = outcome.signs.last
    word = "after" if number == found.frame and (found.byte or 0) > start else "at"
    byte = "" if found.byte is None else f" (byte {found.byte})"
    return f" {word} frame {found.frame}{byte}"


def _more(count: int) -> list[Text]:
    return [Text(f"and {count:,} more: see --json", "dim")] if count > 0 else []


def _doctor(outcome: Outcome, diagnosis: Diagnosis, signs: Signs) -> Iterator[RenderableType]:
    """What the stream is worth, where it went wrong, and what may be done with it."""
    first, style = diagnosis.first, OF_VERDICT.get(diagnosis.verdict, "bold red")
    whole = diagnosis.verdict == "whole"
    head = Text.assemble((diagnosis.verdict, style))
    if first is not None:
        beside = f", with {ARTICLE[first.severity]} {first.severity}" if whole else ""
        head.append(f"{beside}{_where(first, outcome)}").append(f" [{first.rule}]", "dim")
    yield head
    if first is not None:
        says = clipped(first.says if whole else diagnosis.says, MAX_SHOWN)
        yield Text(says.replace("…", "...") if signs is ASCII else says)
    if diagnosis.layer:
        known = first is not None and diagnosis.because == RULES[first.rule].says
        why = "" if known else f": {diagnosis.because}"
        yield Text(f"likely {WHOSE[diagnosis.layer]}{why}", "dim")
    told = {"may": diagnosis.may, "may not": diagnosis.may_not, "advice": (diagnosis.advice,)}
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, words in told.items():
        if any(words):
            table.add_row(Text(name, "dim"), Text("; ".join(words)))
    yield table


def _timings(metrics: Metrics, diagnosis: Diagnosis) -> list[RenderableType]:
    """The numbers of a timed recording, in sentences."""
    if metrics.ttfc_s is None:
        idle, wait = seconds(metrics.longest_idle_s), seconds(metrics.longest_wait_s)
        return [Text(f"no content in {wait}; the longest time without any byte was {idle}")]
    told = (*_first_and_last(metrics), *_between(metrics), _held_back(metrics, diagnosis))
    return [Text(line) for line in told if line]


def _held_back(metrics: Metrics, diagnosis: Diagnosis) -> str:
    """That content was held back. By whom, and what to do, the doctor says where he is asked."""
    if diagnosis.verdict == "buffered":
        return "looks buffered: the doctor says where"
    said = "looks buffered: " if metrics.buffered else ""
    return f"{said}{metrics.advice}" if metrics.advice else ""


def _first_and_last(metrics: Metrics) -> Iterator[str]:
    firsts = {
        "thinking": metrics.time_to_first_thinking_s,
        "text": metrics.ttft_s,
        "tool": metrics.time_to_first_tool_s,
    }
    known = [f"{name} {seconds(t)}" for name, t in firsts.items() if t is not None]
    yield f"first {', '.join(known) or 'content ' + seconds(metrics.ttfc_s or 0.0)}"
    settled = metrics.settlement_lag_s
    after = "" if settled is None else f", the final marker {seconds(settled)} later"
    yield f"last content {seconds(metrics.e2e_s or 0.0)}{after}"


def _between(metrics: Metrics) -> Iterator[str]:
    if (gaps := metrics.icl_s) is not None:
        shown = {"median": gaps.median, "p90": gaps.p90, "p99": gaps.p99, "max": gaps.max}
        words = ", ".join(f"{name} {seconds(value)}" for name, value in shown.items())
        yield f"between content events: {words}"
    if metrics.output_tokens_per_s is not None:
        pace = ""
        if metrics.tpot_s and not metrics.buffered:  # the pace of what was held back is none
            pace = f", one every {seconds(metrics.tpot_s)} after the first content"
        yield f"{metrics.output_tokens_per_s:.3g} output tokens a second{pace}"
    stalls = metrics.stalls
    if stalls.count:
        at = ", ".join(seconds(at) for at in stalls.at[:5])
        longest = f", {seconds(stalls.longest_s)} the longest" if stalls.count > 1 else ""
        count, total = counted(stalls.count, "stall"), seconds(stalls.total_s)
        yield f"{count} at {at}: {total} of silence{longest}"
