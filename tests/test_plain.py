"""What a stranger's text may do to a terminal: nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamlab.analysis.plain import clipped, visible

any_text = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain words, ñ, 你好, שלום, 😀", "plain words, ñ, 你好, שלום, 😀"),
        ("a\nb\tc", "a⏎b⇥c"),
        ("\x1b[2J\x1b]8;;http://x\x07", "␛[2J␛]8;;http://x␇"),
        ("\x9b31m", "⟨U+009B⟩31m"),
        ("\r\x08\x7f\0", "␍␈␡␀"),
        ("\u202eabc\u2066", "⟨U+202E⟩abc⟨U+2066⟩"),
        ("\u200b\ufeff\U000e0041", "⟨U+200B⟩⟨U+FEFF⟩⟨U+E0041⟩"),
        ("\u2028\u2029\x85", "⟨U+2028⟩⟨U+2029⟩⟨U+0085⟩"),
        ("\ud83d", "⟨U+D83D⟩"),
        ("a\xa0b\u3000c", "a b c"),
        ("👩\u200d💻", "👩\u200d💻"),
    ],
    ids=[
        *("honest text stays", "line ends", "escape sequences", "C1 controls", "controls", "bidi"),
        *("invisible", "other line ends", "half a character", "wide spaces", "joiners"),
    ],
)
def test_what_has_no_picture_gets_a_sign_of_itself(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(any_text)
def test_nothing_that_is_shown_can_act(text: str) -> None:
    kept = {"\u200c", "\u200d"}
    for char in visible(text):
        assert unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") or char in kept
    visible(text).encode()


@given(any_text, st.integers(3, 50))
def test_a_clipped_text_shows_both_ends_and_says_how_long_it_was(text: str, most: int) -> None:
    shown = clipped(text, most)
    if len(text) <= most:
        assert shown == visible(text)
    else:
        assert f"({len(text):,} characters)" in shown
        assert shown.startswith(visible(text[: most - most // 3]))
