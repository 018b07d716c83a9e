"""The README says what is true: its example prints what it says, and what it links to is there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from streamlab.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of one language."""
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_the_worked_example_prints_what_the_readme_says() -> None:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(blocks("python")[0], "README.md", "exec"), {})
    assert out.getvalue() == blocks("text")[0]


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)]+)\)", README))
def test_every_link_leads_to_a_file(link: str) -> None:
    assert (ROOT / link).is_file()


def test_show_prints_what_the_readme_says(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = next(text for text in blocks("console") if "show" in text)
    command, _, said = block.partition("\n")
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "92")
    assert main(command.split()[4:]) == 1  # a finding
    shown = [line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines()]
    assert shown == said.splitlines()
