"""Make a bare checkout runnable: `.venv` beside the package, from requirements.lock.

Standard library only, and it must parse on Python 3.8: it runs before anything is installed.
The one idea: *a stamp, written last, is the only proof that an environment is whole*. Before the
first change the stamp says "unfinished", and whoever finds that word starts again, so Ctrl-C and a
power cut leave nothing half-trusted. An environment that somebody else made is completed in
place and never deleted. One start works at a time; the others wait for it.
Read next: `__main__.py`, which decides when this is needed.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamlab.errors import UsageError
from streamlab.job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "ROOT",
    "has_dependencies",
    "is_checkout",
    "is_current",
    "is_inside",
    "missing",
    "set_up",
]

PROJECT_NAME = "streamlab"
OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
PACKAGES = "Lib/site-packages" if os.name == "nt" else "lib/python*/site-packages"
LOG = VENV / "streamlab-setup.log"

# The stamp's lines: the lock's sha256, or UNFINISHED; ROOT, because scripts in an environment hold
# absolute paths, so a moved or copied one is not whole; and which way the environment came about.
STAMP = VENV / "streamlab.stamp"
UNFINISHED = "unfinished"
MADE, UPDATED, ADOPTED = "made", "updated", "adopted"

# Two personal pip settings that can't work here are off; all others hold, above all the index.
PIP_SETTINGS = {"PIP_USER": "0", "PIP_REQUIRE_HASHES": "0"}


# ── is there anything to do? ─────────────────────────────────────────────────────────────────


def is_checkout() -> bool:
    """Tell whether this package lies in a source checkout, and not in site-packages."""
    return PROJECT.is_file() and LOCK.is_file()


def is_inside() -> bool:
    """Tell whether this interpreter is the one in `.venv`."""
    return VENV.is_dir() and os.path.samefile(sys.prefix, VENV)


def is_current() -> bool:
    """Tell whether `.venv` is whole and holds what the lock says today."""
    return PYTHON.exists() and read_stamp()[:2] == whole()


def has_dependencies(*, dev: bool) -> bool:
    """Tell whether streamlab and what it needs are installed here, new enough."""
    if sys.version_info < OLDEST:
        return False
    from importlib import metadata

    for requirement in [f"{PROJECT_NAME}>=0", *requirements(dev=dev)]:
        name, _, least = requirement.partition(">=")
        try:
            if release(metadata.version(name)) < release(least):
                return False
        except metadata.PackageNotFoundError:
            return False
    return True


def missing(error: ModuleNotFoundError) -> UsageError | None:
    """Say what to do about a dependency that is not there; None if the module is our own."""
    name = (error.name or "").partition(".")[0]
    if name in ("", PROJECT_NAME):
        return None
    if is_checkout() and is_inside():  # the stamp vouched for it, so somebody deleted it
        return UsageError(f"{name} is missing from .venv: remove .venv and start again")
    return UsageError(f"{name} is missing in {sys.prefix}; install it there")


def requirements(*, dev: bool) -> list[str]:
    """Return the direct dependencies, each as `name>=version`, from pyproject.toml."""
    project = read_project()
    wanted: list[str] = project["project"]["dependencies"]
    return wanted + project["dependency-groups"]["dev"] if dev else wanted


def read_project() -> dict[str, Any]:
    """Parse pyproject.toml."""
    import tomllib  # not in Python 3.10, which must get as far as being told so

    return tomllib.loads(PROJECT.read_text(encoding="utf-8"))


def release(version: str) -> list[int]:
    """Return the leading numbers of a version, to compare.

    >>> release("4.6.1rc1") < release("4.10")
    True
    """
    match = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in match.group().split(".")] if match else []


def read_stamp() -> list[str]:
    """Return the stamp's lines; none where there is no stamp that can be read."""
    try:
        return os.fsdecode(STAMP.read_bytes()).splitlines()
    except (OSError, ValueError):
        return []


def whole() -> list[str]:
    """Return what the stamp of a whole environment begins with."""
    return [hashlib.sha256(LOCK.read_bytes()).hexdigest(), str(ROOT)]


# ── the set-up ───────────────────────────────────────────────────────────────────────────────


def set_up() -> Path:
    """Bring `.venv` to what the lock says; return the interpreter to go on with."""
    if is_inside():  # the ground can't be changed from under one's feet: the outer Python does it
        return Path(getattr(sys, "_base_executable", sys.executable))
    if is_current():
        return PYTHON
    require_recent_python()
    job = Job(log=LOG, environment={**os.environ, **PIP_SETTINGS})
    try:
        with job.alone(LOCK):
            if not is_current():  # another start may have done it while this one waited
                build(job)
                job.say(f"set-up done in {job.elapsed:.0f} s")
    except OSError as error:
        raise UsageError(f"set-up failed: can't write in {ROOT}: {error}") from None
    except KeyboardInterrupt:
        job.say("set-up stopped; the next start does it again")
        raise
    finally:
        job.wipe()
    return PYTHON


def require_recent_python() -> None:
    """Refuse a Python that is too old."""
    if sys.version_info < OLDEST:
        raise UsageError(
            f"needs Python 3.11 or newer, and this is {this_python()}; "
            "start it with a newer one, such as: python3.12 -m streamlab lab"
        )


def require_venv() -> None:
    """Refuse where no environment can be made; Debian packages venv on its own."""
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info)
        raise UsageError(
            f"can't make .venv: {this_python()} comes without its venv part; "
            f"on Debian or Ubuntu: apt install {package}"
        )
    if any("\ud800" <= letter <= "\udfff" for letter in str(ROOT)):  # bytes that are no text
        raise UsageError(
            f"can't make .venv: the path {str(ROOT)!a} is not UTF-8; move the checkout"
        )


def this_python() -> str:
    """Name the running interpreter for a person."""
    return "Python {}.{}.{} ({exe})".format(*sys.version_info, exe=sys.executable)


def build(job: Job) -> None:
    """Make or complete `.venv`; the stamp comes last."""
    way = choose_way()
    if way == MADE:
        require_venv()
    if way != ADOPTED:
        VENV.mkdir(exist_ok=True)
        write_stamp(UNFINISHED, str(ROOT))
    if way == MADE:
        empty_venv()
        job.run([sys.executable, "-I", "-m", "venv", str(VENV)], lambda _: ("making .venv", 0, 0))
    install(job)
    if hasattr(os, "sync"):
        os.sync()  # the stamp must not reach the disk before what it vouches for
    write_stamp(*whole(), way)


def choose_way() -> str:
    """Decide how to reach a whole environment: anew, or in place."""
    stamp = read_stamp()
    foreign = not STAMP.exists() and VENV.exists() and any(VENV.iterdir())
    if foreign or ADOPTED in stamp:
        if not PYTHON.exists():
            raise UsageError(f"{VENV} is no whole environment and not streamlab's: move it away")
        return ADOPTED
    whole_once = stamp[1:2] == [str(ROOT)] and stamp[0] != UNFINISHED and PYTHON.exists()
    return UPDATED if whole_once else MADE


def empty_venv() -> None:
    """Delete all but the stamp: the word "unfinished" has to outlive what it is about."""
    for child in VENV.iterdir():
        if child.is_dir() and not child.is_symlink():
            shutil.rmtree(child)
        elif child != STAMP:
            child.unlink()


def install(job: Job) -> None:
    """Install what the lock pins, then the checkout itself."""
    python = [str(PYTHON), "-I", "-m"]  # -I: nothing on PYTHONPATH passes for installed
    if not any(VENV.glob(f"{PACKAGES}/pip")):  # an environment made by uv
        job.run([*python, "ensurepip"], lambda _: ("adding pip", 0, 0))
    pip = [*python, "pip", "--no-input", "--disable-pip-version-check", "install"]
    before = installed()
    pinned = [*pip, "--progress-bar", "off", "--require-hashes", "-r", str(LOCK)]
    job.run(pinned, lambda lines: stage(lines, before))
    wheel = write_wheel(VENV)
    own = [*pip, "--no-index", "--no-deps", "--force-reinstall", str(wheel)]
    job.run(own, lambda _: ("adding streamlab itself", 0, 0))
    wheel.unlink()


def write_stamp(*lines: str) -> None:
    """Replace the stamp in one step."""
    new = STAMP.with_suffix(".new")
    new.write_bytes(os.fsencode("\n".join(lines) + "\n"))  # a path need not be UTF-8
    new.replace(STAMP)


def write_wheel(folder: Path) -> Path:
    """Write a wheel that points at the checkout, as an editable install does; return its path.

    It needs no build backend, and pip makes the right launcher for the platform from it.
    """
    project = read_project()["project"]
    name, version = project["name"], project["version"]
    info = f"{name}-{version}.dist-info"
    scripts = [f"{script} = {target}" for script, target in project["scripts"].items()]
    named = [f"Name: {name}", f"Version: {version}"]
    needs = [f"Requires-Dist: {requirement}" for requirement in project["dependencies"]]
    packages = next(VENV.glob(PACKAGES))
    files = {
        # Relative, so that no path's letters have to survive the encoding of a .pth file.
        f"{name}.pth": [Path(os.path.relpath(ROOT, packages)).as_posix()],
        f"{info}/METADATA": ["Metadata-Version: 2.1", *named, *needs],
        f"{info}/WHEEL": ["Wheel-Version: 1.0", "Root-Is-Purelib: true", "Tag: py3-none-any"],
        f"{info}/entry_points.txt": ["[console_scripts]", *scripts],
    }
    files[f"{info}/RECORD"] = [f"{file},," for file in [*files, f"{info}/RECORD"]]
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file, lines in files.items():
            archive.writestr(file, "\n".join(lines) + "\n")
    return wheel


def stage(lines: Sequence[str], before: set[str]) -> tuple[str, int, int]:
    """Read from pip's output what it is doing, how many are done, and how many there are."""
    starts = [line.partition(" ")[0] for line in lines]
    for line in lines:
        if line.startswith("Installing collected packages:"):
            return "installing", len(installed() - before), line.count(",") + 1
    found = sum(starts.count(word) for word in ("Collecting", "Processing", "Requirement"))
    pinned = len(re.findall(r"^[\w.-]+==", LOCK.read_text(encoding="utf-8"), re.MULTILINE))
    return "fetching", found, pinned - starts.count("Ignoring")  # those for other platforms


def installed() -> set[str]:
    """Return the installed packages, as the names of their metadata folders."""
    return {path.name for path in VENV.glob(f"{PACKAGES}/*.dist-info")}
