"""Every scenario has one name and one sentence, ends where it says, and can be played to a client.

What the acceptance sequences prove is said for each of them apart.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from streamlab import cli
from streamlab.analysis.judge import judge
from streamlab.analysis.trace import Step, Trace, trace
from streamlab.consumer.delivery import Receipt
from streamlab.errors import UsageError
from streamlab.streams import faults, scenarios, synth
from streamlab.streams.recording import Recording
from streamlab.streams.scenarios import SCENARIOS, Scenario, named
from streamlab.streams.server import FaultServer
from streamlab.widgets.stepper import Stepper
from tests.loopback import Client, ask, request, unchunked

ROOT = Path(__file__).parent.parent
each_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)


def judged(scenario: Scenario) -> Step:
    """The step at which the scenario is judged."""
    steps = trace(scenario.script).steps
    if scenario.after is None:
        return steps[-1]
    return next(step for step in steps if step.frame and step.frame.number == scenario.after)


def effects(of: Trace) -> int:
    """How often an effect was submitted."""
    return sum(step.kind == "effect" for step in of.steps)


# --- All of them ----------------------------------------------------------------------------------


@each_scenario
def test_a_scenario_ends_where_it_says(scenario: Scenario) -> None:
    assert judged(scenario).attempt.state is scenario.state


@each_scenario
def test_where_nothing_happens_beside_the_stream_judging_it_says_the_same(
    scenario: Scenario,
) -> None:
    script = scenario.script
    if not script.controls:
        end = judge(script.recording, script.policy).state
        assert end is trace(script).attempt.state


@each_scenario
def test_a_scenario_is_named_as_its_function_and_says_one_sentence(scenario: Scenario) -> None:
    function = getattr(scenarios, scenario.name)
    assert function is scenario.make
    assert function.__doc__ == scenario.says
    assert scenario.says[0].isupper() and scenario.says.endswith(".")
    assert 20 < len(scenario.says) < 100 and "\n" not in scenario.says
    assert named(scenario.name) is scenario


@each_scenario
def test_the_line_of_code_of_a_scenario_makes_it_again(scenario: Scenario) -> None:
    script = scenario.script
    again = eval(script.code, {"scenarios": scenarios})
    assert (again.code, again.controls) == (f"scenarios.{scenario.name}()", script.controls)
    assert (again.recording, again.prompt) == (script.recording, script.prompt)
    assert len(script.prompt) > 3


@each_scenario
def test_every_scenario_can_be_stepped_through(scenario: Scenario) -> None:
    stepper = Stepper(scenario.script)
    sent = json.loads(stepper.trace)
    assert sent["steps"][-1]["state"] == stepper.folded.attempt.state
    assert sent["code"] == f"trace(scenarios.{scenario.name}())"


def test_no_two_scenarios_are_the_same() -> None:
    kinds = {(s.script.recording, s.script.controls) for s in SCENARIOS.values()}
    by_policy = {
        "open_block_looks_whole",
        "not_authorised",
    }  # the whole answer, judged in other ways
    assert len(kinds) == len(SCENARIOS) - len(by_policy)
    assert len({s.says for s in SCENARIOS.values()}) == len(SCENARIOS)


def test_an_unknown_name_is_refused_with_names_that_are_like_it() -> None:
    with pytest.raises(UsageError, match="no scenario 'refusals'; like it are refusal"):
        named("refusals")
    with pytest.raises(UsageError, match="SCENARIOS has them all"):
        named("\n" * 1000)


# --- The eight acceptance sequences ---------------------------------------------------------------


def test_each_acceptance_sequence_is_one_scenario() -> None:
    numbers = [s.requirement for s in SCENARIOS.values() if s.requirement]
    assert numbers == [f"R{n}" for n in range(1, 9)]


def test_where_the_fragments_look_whole_the_block_is_open_and_nothing_is_dispatched() -> None:
    scenario = named("open_block_looks_whole")
    step = judged(scenario)
    (call,) = step.turn.calls
    assert json.loads(call.text) == {"item": "W-7", "label": "Ready for review"}
    assert (call.status, call.input, step.attempt.state.value) == ("streaming", None, "PREVIEW")
    assert effects(trace(scenario.script)) == 0


def test_a_whole_proposal_has_passed_every_gate_and_may_be_committed() -> None:
    script = scenarios.whole_proposal()
    verdicts = trace(script).steps[-1].verdicts
    assert [verdict.passed for verdict in verdicts] == [True] * 7
    assert effects(trace(script)) == 0
    assert trace(script.commit()).attempt.state == "COMMITTED"


def test_a_dropped_connection_leaves_a_parsed_block_and_no_proposal() -> None:
    script = scenarios.dropped_after_block_stop()
    (call,) = trace(script).turn.calls
    assert call.status == "ready"
    assert judge(script.recording, script.policy).proposals == ()
    assert trace(script.commit()).attempt.state == "INCOMPLETE"


def test_a_token_limit_is_held_although_every_marker_came() -> None:
    script = scenarios.max_tokens_inside_tool_json()
    folded = trace(script)
    assert folded.turn.complete
    assert "max_tokens" in folded.attempt.why
    assert effects(trace(script.commit())) == 0


@pytest.mark.parametrize(
    ("name", "state"),
    [("error_then_late_completion", "INVALID"), ("cancelled_then_more_arrives", "ABORTED")],
)
def test_what_comes_late_is_on_record_and_changes_nothing(name: str, state: str) -> None:
    steps = trace(named(name).script).steps
    settled = next(n for n, step in enumerate(steps) if step.attempt.state == state)
    assert settled < len(steps) - 1
    assert len({step.attempt for step in steps[settled:]}) == 1
    assert [step.receipt for step in steps if step.kind == "late"] == [Receipt.LATE]
    assert effects(trace(named(name).script)) == 0


def test_after_the_cancellation_the_rest_arrives_and_a_commit_is_refused() -> None:
    kinds = [step.kind for step in trace(scenarios.cancelled_then_more_arrives()).steps]
    after = kinds[kinds.index("cancel") + 1 :]
    assert after == ["frame"] * 6 + ["end", "late", "commit"]


def test_what_is_delivered_twice_counts_once_and_equal_text_counts_twice() -> None:
    folded = trace(scenarios.delivered_twice())
    again = [step for step in folded.steps if step.kind == "redeliver"]
    assert [step.receipt for step in again] == [Receipt.REPEATED] * 2
    assert all(step.turn is step.turn_before for step in again)
    assert all(step.attempt is step.attempt_before for step in again)
    assert folded.turn.text == "haha!"


def test_a_lost_answer_is_reconciled_and_there_is_one_effect() -> None:
    folded = trace(scenarios.answer_of_the_commit_lost())
    states = list(dict.fromkeys(step.attempt.state.value for step in folded.steps))
    assert states[-4:] == ["VALIDATED_PROPOSAL", "COMMITTING", "RECONCILING", "COMMITTED"]
    assert effects(folded) == 1


# --- Others ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "amount"), [("lost_fragment", 1), ("doubled_fragment", 10_000_000_000)]
)
def test_a_wrong_amount_can_pass_every_gate(name: str, amount: int) -> None:
    (proposal,) = judge(named(name).recording).proposals
    assert proposal.input["amount"] == amount


def test_the_thinking_is_whole_and_its_signature_is_not_there() -> None:
    (thinking,) = trace(scenarios.thinking_cut_before_its_signature()).turn.segments
    assert thinking.text.endswith("be reviewed.")
    assert (thinking.signature, thinking.status) == ("", "streaming")


def test_committing_twice_makes_one_effect() -> None:
    assert effects(trace(scenarios.committed_twice())) == 1


def test_interleaved_blocks_are_not_in_the_order_of_their_numbers() -> None:
    data = scenarios.interleaved_blocks().recording.data
    assert data != synth.parallel_tools().data
    assert sorted(data) == sorted(synth.parallel_tools().data)


# --- Played to a client ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def playing() -> object:
    with FaultServer({name: scenario.recording for name, scenario in SCENARIOS.items()}) as server:
        yield server


def asking(model: str) -> bytes:
    return request(json.dumps({"model": model, "stream": True}).encode())


@each_scenario
def test_the_server_plays_each_stream_to_its_end(playing: FaultServer, scenario: Scenario) -> None:
    recording = scenario.recording
    if recording.ending == "timeout":
        with Client(playing.url, asking(scenario.name)) as client:
            got = client.read_until(faults.frames(recording)[-1].data[-20:])
            while unchunked(got.partition(b"\r\n\r\n")[2])[0] != recording.data:
                got += client.socket.recv(65536)
            client.socket.settimeout(0.02)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)
        return
    _, body, stopped = ask(playing.url, asking(scenario.name))
    data, complete = unchunked(body)
    assert data == recording.data
    assert complete == (recording.ending == "eof")
    assert stopped == ("reset" if recording.ending == "reset" else "eof")


def said(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    status = cli.main(["serve", *args])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_command_lists_every_scenario_with_its_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, err = said(capsys, "--scenario", "list")
    assert (status, err) == (0, "")
    found = [line.split(maxsplit=1) for line in out.splitlines()]
    assert found == [[scenario.name, scenario.says] for scenario in SCENARIOS.values()]


def test_the_help_says_how_to_list_them(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = said(capsys, "--help")
    assert status == 0
    assert "serve --scenario list" in out


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--scenario", "refuse"], "no scenario 'refuse'; like it are refusal"),
        (["--scenario", "refusal", "--status", "529"], "so there is no --scenario"),
        (["--scenario", "refusal", "x.sse"], "files and --scenario: give one of them"),
        (["--scenario", "refusal", "--after", "10"], "refusal: --after 10: it has only 9 frames"),
        (["--scenario"], "expected one argument"),
    ],
)
def test_a_scenario_that_cannot_be_served_is_one_line(
    capsys: pytest.CaptureFixture[str], given: list[str], says: str
) -> None:
    status, out, err = said(capsys, *given)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert says in err


SERVED: list[tuple[list[str], str, Recording]] = [
    (["refusal"], "any model", scenarios.refusal().recording),
    (["refusal", "rule_broken"], "rule_broken", scenarios.rule_broken().recording),
    (["all"], "cut_inside_tool_json", scenarios.cut_inside_tool_json().recording),
]


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
def test_of_several_scenarios_the_shorter_ones_come_whole_and_are_named() -> None:
    names = [word for name in ("refusal", "rule_broken") for word in ("--scenario", name)]
    options = [*names, "--after", "10", "--port", "0", "--pace", "max"]
    command = [sys.executable, "-m", "streamlab", "serve", *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        assert process.stdout is not None and process.stderr is not None
        url = process.stdout.readline().decode().split()[4]
        short, long = (unchunked(ask(url, asking(n))[1])[0] for n in ("refusal", "rule_broken"))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
        said = process.stderr.read().decode()
    assert said == "streamlab: --after 10: these are shorter and come whole: refusal (9)\n"
    assert short == scenarios.refusal().recording.data
    assert long == faults.disconnect(scenarios.rule_broken().recording, 10).data


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C in another way")
@pytest.mark.parametrize(("names", "model", "wanted"), SERVED, ids=["one", "two", "all"])
def test_the_command_serves_scenarios_by_name(
    names: list[str], model: str, wanted: Recording
) -> None:
    options = [word for name in names for word in ("--scenario", name)]
    command = [sys.executable, "-m", "streamlab", "serve", *options, "--port", "0", "--pace", "max"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().decode().split()[4]
        _, body, _ = ask(url, asking(model))
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0
    assert unchunked(body) == (wanted.data, True)
