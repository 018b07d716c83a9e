"""Predict, then look: a question beside the cell that answers it.

`predict("00-sdk")` shows the question and keeps the guess in this kernel; `reveal("00-sdk")`, after
the code that shows what is so, gives the reason for every option. Neither waits for the other or
for a person, so Run All runs through. A page without a kernel shows the same text, standing still.

The view (`quiz.js`) sets three traits and asks nothing: which option is picked, which one was the
guess, and whether the learner wants to be told now. The guess comes as a message, too: traits wait
in the page while the kernel is busy, and the next cell would read the guess before.
Read next: `study/questions.py`.
"""

from __future__ import annotations

import html as markup
import re
import textwrap
from pathlib import Path
from typing import Any

import anywidget
import traitlets
from ipywidgets import VBox

from streamlab.errors import UsageError
from streamlab.study.questions import GUESSES, QUESTIONS, question
from streamlab.study.tasks import Option, Question

__all__ = ["Predict", "Predicts", "Reveal", "Reveals", "predict", "reveal", "summary"]

HERE = Path(__file__).parent

#: Width of what is printed, in characters.
WIDTH = 88

#: How a reveal stands beside its question, where a page keeps styles (GitHub does not).
BOX = "max-width: 760px; border-left: 3px solid #8888; padding-left: 16px; margin: 6px 0"

#: Question id -> its newest view.
SHOWN: dict[str, Predict] = {}


def predict(*ids: str) -> Predict | Predicts:
    """Show a question, or several under each other; each guess is kept in `GUESSES`."""
    asked = [Predict(question(id)) for id in ids]
    return asked[0] if len(asked) == 1 else Predicts(asked)


def reveal(*ids: str) -> Reveal | Reveals:
    """Say which option is right, and why each of the others tempts."""
    for id in ids:
        if id in SHOWN:
            SHOWN[id].revealed = True
    if len(ids) == 1:
        return Reveal(question(ids[0]), GUESSES.get(ids[0]))
    numbered = enumerate(ids, 1)
    return Reveals([Reveal(question(id), GUESSES.get(id), f"Answer {n}") for n, id in numbered])


def summary(lesson: str) -> None:
    """Print how the guesses of one lesson went, and where to read again."""
    asked = [each for id, each in QUESTIONS.items() if id.startswith(f"{lesson}-")]
    if not asked:
        raise UsageError(f"lesson {lesson!r} has no questions")
    guessed = [each for each in asked if each.id in GUESSES]
    if not guessed:
        print(f"Lesson {lesson}: no guesses yet. Pick one in each box, then run this cell again.")
        return
    wrong = [each for each in guessed if GUESSES[each.id] != each.right]
    print(f"Lesson {lesson}: {len(guessed) - len(wrong)} of {len(guessed)} guesses were right.")
    for each in wrong:
        print(f"  Read again: {each.again} (you guessed {letter(GUESSES[each.id])})")


def letter(place: int) -> str:
    """What an option is called: A for the first."""
    return chr(ord("A") + place)


class Predict(anywidget.AnyWidget):
    """One question to guess at."""

    _esm = HERE / "quiz.js"
    _css = HERE / "quiz.css"

    question = traitlets.Dict(help="the text and the options").tag(sync=True)
    picked = traitlets.Int(-1, help="the option in view, from 0; -1: none").tag(sync=True)
    guess = traitlets.Int(-1, help="the option that was guessed first").tag(sync=True)
    told = traitlets.Bool(False, help="the learner wants to be told now").tag(sync=True)
    revealed = traitlets.Bool(False, help="the notebook has shown what is so").tag(sync=True)

    def __init__(self, asked: Question) -> None:
        self._asked = asked
        self._heard = False  #: whether the page sends its guesses as messages
        options = [{"text": o.text, "says": o.says, "right": o.right} for o in asked.options]
        guess = GUESSES.get(asked.id, -1)
        super().__init__(
            question={"text": asked.text, "options": options}, guess=guess, picked=guess
        )
        self.on_msg(self._hear)
        SHOWN[asked.id] = self

    @traitlets.validate("picked", "guess")
    def _is_an_option(self, proposal: dict[str, Any]) -> int:
        place = int(proposal["value"])
        if not -1 <= place < len(self._asked.options):
            raise traitlets.TraitError(f"{self._asked.id} has no option number {place}")
        return place

    def _hear(self, _: Predict, message: object, buffers: object) -> None:
        """Keep a guess that comes as a message; what is no guess is ignored.

        The traits are left alone: to set one here would tell the page, which may have moved on.
        """
        place = message.get("guess") if isinstance(message, dict) else None
        if type(place) is int and 0 <= place < len(self._asked.options):
            self._heard = True
            GUESSES[self._asked.id] = place

    @traitlets.observe("guess")
    def _keep_guess(self, change: dict[str, Any]) -> None:
        """Keep a guess of a page that sends no messages; of another, the trait may be older."""
        if change["new"] >= 0 and not self._heard:
            GUESSES[self._asked.id] = change["new"]

    def __repr__(self) -> str:
        options = (f"{letter(n)}  {o.text}" for n, o in enumerate(self._asked.options))
        text = textwrap.fill(f"Predict: {self._asked.text}", WIDTH)
        return "\n".join([text, *(_indented(option) for option in options)])

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        options = (f"<b>{letter(n)}</b> {_html(o.text)}" for n, o in enumerate(self._asked.options))
        data["text/plain"] = repr(self)
        data["text/html"] = (
            f"<p><b>Predict</b> {_html(self._asked.text)}</p><p>{'<br>'.join(options)}</p>"
        )
        return data, metadata


class Predicts(VBox):  # type: ignore[misc]
    """Several questions under each other."""

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.children))

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        shown = super()._repr_mimebundle_(**kwargs)
        bundles = (child._repr_mimebundle_()[0] for child in self.children)
        html = "".join(bundle["text/html"] for bundle in bundles)
        return {**shown, "text/plain": repr(self), "text/html": html}, {}


class Reveal:
    """What is said when the notebook shows what is so: first about the learner's own guess."""

    def __init__(self, asked: Question, guess: int | None, title: str = "The answer") -> None:
        self.title = title
        named = [(letter(n), option) for n, option in enumerate(asked.options)]
        told = {asked.right} if guess is None else {asked.right, guess}
        self.right = named[asked.right]
        self.guessed = None if guess is None else named[guess]
        self.others = [pair for n, pair in enumerate(named) if n not in told]

    def _paragraphs(self) -> list[tuple[str, Option]]:
        """(what is said of it, option) of those that need no click."""
        if self.guessed is None or self.guessed == self.right:
            you = "You guessed it: " if self.guessed else ""
            return [(f"{you}{self.right[0]} is right", self.right[1])]
        return [
            (f"You guessed {self.guessed[0]}", self.guessed[1]),
            (f"{self.right[0]} is right", self.right[1]),
        ]

    def __repr__(self) -> str:
        others = [(f"Why {name} tempts", option) for name, option in self.others]
        said = (
            textwrap.fill(f"{what}: {option.text}", WIDTH) + "\n" + _indented(option.says)
            for what, option in (*self._paragraphs(), *others)
        )
        return "\n".join(said)

    def _repr_html_(self) -> str:
        def paragraph(what: str, option: Option) -> str:
            return f"<p><b>{what}</b>: {_html(option.text)}<br>{_html(option.says)}</p>"

        said = "".join(paragraph(*each) for each in self._paragraphs())
        others = "".join(paragraph(*each) for each in self.others)
        more = f"<details><summary>Why the others tempt</summary>{others}</details>"
        shut = "" if self.guessed is None else " open"  # who has not guessed yet may still want to
        answer = f"<details{shut}><summary>{self.title}</summary>{said}{more}</details>"
        return f'<div style="{BOX}">{answer}</div>'


class Reveals:
    """What is said of several questions."""

    def __init__(self, told: list[Reveal]) -> None:
        self.told = told

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self.told))

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.told)


def _indented(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="  ")


def _html(text: str) -> str:
    """Escape for HTML; what stands between backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", markup.escape(text))
