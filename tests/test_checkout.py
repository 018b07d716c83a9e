"""The set-up of a bare checkout, for real: small checkouts, real environments and pip, no network.

Each test starts `python -m streamlab` in a folder that holds the package's own starting modules,
a command line that prints where it runs, and a lock with one wheel in it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamlab import checkout

PACKAGE = Path(checkout.__file__).parent
STARTING = ("__init__.py", "__main__.py", "checkout.py", "errors.py", "job.py")
CLI = """
import json, sys
def main(argv=None):
    import tiny
    args = sys.argv[1:] if argv is None else argv
    print(json.dumps({"prefix": sys.prefix, "tiny": tiny.VERSION, "args": args}))
    return 3 if "finding" in args else 0
"""
PROJECT = """
[project]
name = "streamlab"
version = "0.1.0"
dependencies = ["tiny>=1"]
[project.scripts]
streamlab = "streamlab.cli:main"
[dependency-groups]
dev = []
"""
PERSONAL = ("PIP_", "PYTHON")  # settings that would reach into the tests
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(PERSONAL)}
ENVIRONMENT["PIP_CONFIG_FILE"] = os.devnull

slow = pytest.mark.slow


def hear_ctrl_c() -> None:
    """Undo what a shell's `&` does to its children, should the tests have been started so."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Checkout:
    """A small source checkout in a folder of its own."""

    def __init__(self, root: Path, lock: str) -> None:
        self.root = root
        package = root / "streamlab"
        package.mkdir(parents=True)
        for name in STARTING:
            shutil.copy(PACKAGE / name, package)
        (package / "cli.py").write_text(CLI)
        (root / "pyproject.toml").write_text(PROJECT)
        self.lock(lock)

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def stamp(self) -> Path:
        return self.venv / checkout.STAMP.name

    def lock(self, line: str) -> None:
        (self.root / "requirements.lock").write_text(line)

    def begin(self, *args: str, **environment: str) -> subprocess.Popen[str]:
        """Start a command, and let it run."""
        return subprocess.Popen(
            [sys.executable, "-m", "streamlab", *args],
            cwd=self.root,
            env=ENVIRONMENT | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=hear_ctrl_c if os.name == "posix" else None,
        )

    def start(self, *args: str, **environment: str) -> Outcome:
        """Start a command and wait for its end."""
        return Outcome(self.begin(*args, **environment))

    def begin_and_wait_for_pip(self) -> subprocess.Popen[str]:
        """Start a command, and return while its set-up is under way."""
        started = self.begin("show")
        while not (self.venv / checkout.LOG.name).exists():
            assert started.poll() is None
            time.sleep(0.02)
        assert self.stamp.read_text().startswith("unfinished")
        return started


class Outcome:
    """How a command ended, and what it said."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.out, self.err = process.communicate()
        self.status = process.returncode

    @property
    def said(self) -> dict[str, object]:
        """What the small command line printed; fail if it never ran."""
        assert self.out, self.err
        said: dict[str, object] = json.loads(self.out)
        return said

    @property
    def did_set_up(self) -> bool:
        return "set-up done" in self.err

    def is_one_line(self, *words: str) -> bool:
        """Tell whether we ended with one line of ours, with these words, and no traceback."""
        assert self.status == 2, (self.status, self.err)
        assert "Traceback" not in self.err
        line = self.err.splitlines()[-1]
        assert all(word in line for word in ("streamlab: ", *words)), line
        return True


def locked(folder: Path, version: int) -> str:
    """Write a wheel of one module and return the line that locks it."""
    info = f"tiny-{version}.dist-info"
    wheel = folder / f"tiny-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", f"VERSION = {version}\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"tiny @ {wheel.as_uri()} --hash=sha256:{digest}\n"


@pytest.fixture(scope="module")
def locks(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    folder = tmp_path_factory.mktemp("wheels")
    return {version: locked(folder, version) for version in (1, 2)}


@pytest.fixture
def bare(tmp_path: Path, locks: dict[int, str]) -> Checkout:
    """A checkout that nothing was done in yet."""
    return Checkout(tmp_path / "bäre checkout", locks[1])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, locks: dict[int, str]) -> Checkout:
    """A checkout after its first start."""
    checkout = Checkout(tmp_path_factory.mktemp("made") / "checkout", locks[1])
    first = checkout.start("show", "a.sse")
    assert first.did_set_up
    assert first.said == {"prefix": str(checkout.venv), "tiny": 1, "args": ["show", "a.sse"]}
    return checkout


@pytest.fixture
def whole(bare: Checkout, made: Checkout) -> Checkout:
    """A checkout that is set up, and may be changed: `made`'s environment, with a stamp for here.

    To make another one takes seconds. Its scripts still name the old place; nobody starts them.
    """
    shutil.copytree(made.venv, bare.venv, symlinks=True)
    there, here = os.fsencode(made.root), os.fsencode(bare.root)
    bare.stamp.write_bytes(made.stamp.read_bytes().replace(there, here))
    return bare


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory, locks: dict[int, str]) -> list[Outcome]:
    """Two starts at once, where a stamp of garbage is all that there is."""
    checkout = Checkout(tmp_path_factory.mktemp("both") / "checkout", locks[1])
    make_whole(checkout).touch()
    checkout.stamp.write_bytes(b"\xff\xfe\n\x80")
    return [Outcome(each) for each in [checkout.begin("show", name) for name in ("one", "two")]]


# ── the second start, and what stands in for a set-up ────────────────────────────────────────


@slow
def test_the_second_start_sets_nothing_up(made: Checkout) -> None:
    before = made.stamp.stat().st_mtime_ns
    second = made.start("show", "finding")
    assert (second.status, second.err) == (3, "")  # the command's own status comes through
    assert second.said["prefix"] == str(made.venv)
    assert made.stamp.stat().st_mtime_ns == before


@slow
def test_the_console_script_is_there(made: Checkout, tmp_path: Path) -> None:
    script = shutil.which("streamlab", path=made.venv / checkout.PYTHON.parent.name)
    assert script
    done = subprocess.run(
        [script, "show"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {"prefix": str(made.venv), "tiny": 1, "args": ["show"]}


@slow
def test_another_environment_that_has_everything_is_used_as_it_is(
    made: Checkout, bare: Checkout
) -> None:
    python = made.venv / checkout.PYTHON.relative_to(checkout.VENV)
    done = subprocess.run(
        [python, "-m", "streamlab", "show"],
        cwd=bare.root,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["prefix"] == str(made.venv)
    assert not bare.venv.exists()


# ── what makes it run again ──────────────────────────────────────────────────────────────────


@slow
def test_a_changed_lock_is_followed_in_place_and_a_failed_change_is_not_trusted(
    whole: Checkout, locks: dict[int, str]
) -> None:
    assert not whole.start("show").did_set_up
    keepsake = whole.venv / "keepsake"
    keepsake.touch()

    whole.lock(locks[2])
    assert whole.start("show").said["tiny"] == 2
    assert keepsake.exists()

    whole.lock(locks[1].replace("sha256:", "sha256:" + "0" * 8)[:-9] + "\n")
    assert whole.start("show").is_one_line("set-up failed", "not the one that the lock pins")

    whole.lock(locks[2])  # the lock of the last good set-up, but nobody knows what pip has left
    again = whole.start("show")
    assert again.did_set_up and again.said["tiny"] == 2
    assert not keepsake.exists()


@slow
def test_a_killed_set_up_is_redone(bare: Checkout) -> None:
    started = bare.begin_and_wait_for_pip()
    started.kill()
    started.communicate()
    leftover = bare.venv / "leftover"
    leftover.touch()
    again = bare.start("show")
    assert again.did_set_up and again.said["tiny"] == 1
    assert not leftover.exists()


@slow
@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to consoles, not to processes")
def test_ctrl_c_stops_the_set_up_in_one_line(bare: Checkout) -> None:
    started = bare.begin_and_wait_for_pip()
    started.send_signal(signal.SIGINT)
    stopped = Outcome(started)
    assert stopped.status == 130
    assert "Traceback" not in stopped.err
    assert stopped.err.splitlines()[-1] == "streamlab: set-up stopped; the next start does it again"
    assert bare.stamp.read_text().startswith("unfinished")


@slow
def test_of_two_starts_at_once_one_sets_up_and_the_other_waits(both: list[Outcome]) -> None:
    assert [outcome.said["tiny"] for outcome in both] == [1, 1]
    assert sum(outcome.did_set_up for outcome in both) == 1
    assert sum("waiting for another start" in outcome.err for outcome in both) == 1


@slow
def test_a_copied_checkout_gets_an_environment_of_its_own(made: Checkout, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(made.root, copy, symlinks=True)
    done = subprocess.run(
        [sys.executable, "-m", "streamlab", "show"],
        cwd=copy,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "set-up done" in done.stderr
    script = shutil.which("streamlab", path=copy / ".venv" / checkout.PYTHON.parent.name)
    assert script and str(made.root) not in Path(script).read_text(errors="replace")


# ── somebody else's .venv ────────────────────────────────────────────────────────────────────


@slow
def test_somebody_elses_environment_is_completed_and_never_deleted(
    bare: Checkout, locks: dict[int, str]
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare.venv], check=True)
    theirs = bare.venv / "theirs"
    theirs.touch()
    for version in (1, 2):  # the second time it bears our stamp, and is still theirs
        bare.lock(locks[version])
        done = bare.start("show")
        assert done.did_set_up and done.said["tiny"] == version
        assert theirs.exists()


def test_a_folder_that_is_no_environment_is_left_alone(bare: Checkout) -> None:
    bare.venv.mkdir()
    (bare.venv / "theirs").touch()
    assert bare.start("show").is_one_line("move it away")
    assert [path.name for path in bare.venv.iterdir()] == ["theirs"]


# ── what can't work says so in one line ──────────────────────────────────────────────────────


@slow
def test_no_network_is_one_line(whole: Checkout) -> None:
    whole.lock("tiny==3.0 --hash=sha256:" + "0" * 64 + "\n")
    closed = "http://127.0.0.1:9/simple"  # the discard port: nobody answers
    failed = whole.start("show", PIP_INDEX_URL=closed, PIP_RETRIES="1")
    assert failed.is_one_line("set-up failed", "is there a network?")


def test_a_file_in_the_way_is_one_line(bare: Checkout) -> None:
    bare.venv.write_text("not a folder")
    assert bare.start("show").is_one_line("can't write in", str(bare.root))


@pytest.fixture
def python_for_nobody() -> str:
    """A Python that a user without rights can start: root's own may lie in /root."""
    if os.geteuid():
        return sys.executable
    return "/usr/bin/python3"


@pytest.fixture
def reachable(locks: dict[int, str]) -> Iterator[Checkout]:
    """A checkout in a folder that every user may read; pytest's are the owner's alone."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        yield Checkout(root / "checkout", locks[1])


@pytest.mark.skipif(os.name == "nt", reason="a folder's rights are another matter on Windows")
def test_a_read_only_checkout_is_one_line(reachable: Checkout, python_for_nobody: str) -> None:
    for path in (reachable.root, reachable.root / "requirements.lock"):
        path.chmod(path.stat().st_mode & ~0o222)
    nobody = {} if os.geteuid() else {"user": 65534, "group": 65534, "extra_groups": []}
    process = subprocess.Popen(
        [python_for_nobody, "-m", "streamlab", "show"],
        cwd=reachable.root,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **nobody,
    )
    assert Outcome(process).is_one_line("can't write in", "Permission denied")
    reachable.root.chmod(0o755)


def make_whole(bare: Checkout) -> Path:
    """Give a checkout a stamp that vouches for an environment with nothing in it; the Python."""
    python = bare.venv / checkout.PYTHON.relative_to(checkout.VENV)
    python.parent.mkdir(parents=True)
    digest = hashlib.sha256((bare.root / "requirements.lock").read_bytes()).hexdigest()
    bare.stamp.write_bytes(os.fsencode(f"{digest}\n{bare.root}\nmade\n"))
    return python


@pytest.mark.skipif(os.name == "nt", reason="Windows has no rights to execute")
@pytest.mark.parametrize("what", ["junk", "not executable", "a folder"])
def test_a_python_that_cannot_be_started_is_one_line(bare: Checkout, what: str) -> None:
    python = make_whole(bare)
    if what == "a folder":
        python.mkdir()
    else:
        python.write_bytes(b"\0junk")
        python.chmod(0o755 if what == "junk" else 0o644)
    assert bare.start("show").is_one_line("can't start", "remove .venv and start again")


def test_a_stamp_that_is_a_folder_is_one_line(bare: Checkout) -> None:
    make_whole(bare).touch()
    bare.stamp.unlink()
    bare.stamp.mkdir()
    assert bare.start("show").is_one_line("can't write in", "streamlab.stamp")


@slow
def test_a_stamp_of_garbage_vouches_for_nothing(both: list[Outcome]) -> None:
    assert any(outcome.did_set_up for outcome in both)
    assert {outcome.said["tiny"] for outcome in both} == {1}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every path is Unicode")
def test_a_path_that_is_not_utf_8_is_one_line_and_a_whole_environment_works_there(
    tmp_path: Path, locks: dict[int, str]
) -> None:
    odd = Checkout(tmp_path / os.fsdecode(b"b\xe4re"), locks[1])
    assert odd.start("show").is_one_line("not UTF-8", "move the checkout")
    assert not odd.venv.exists()
    python = make_whole(odd)
    python.write_text("#!/bin/sh\necho it went on\n")
    python.chmod(0o755)
    went_on = odd.start("show")
    assert (went_on.out, went_on.err) == ("it went on\n", "")


@slow
def test_a_package_deleted_from_a_whole_environment_is_one_line(whole: Checkout) -> None:
    (module,) = whole.venv.glob(f"{checkout.PACKAGES}/tiny.py")
    module.unlink()
    assert whole.start("show").is_one_line("tiny is missing from .venv: remove .venv and start")
