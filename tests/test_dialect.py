"""What all dialects share: indexes, words and counts that are what they claim to be."""

from __future__ import annotations

import pytest

from streamlab.wire.dialect import MAX_INDEX, count, is_index, word

ODD = [(-1, None), (True, None), (1.5, None), ("12", None), (None, None), (2**63, None)]


@pytest.mark.parametrize(("value", "expected"), [(12, 12), (0, 0), *ODD], ids=repr)
def test_a_token_count_is_a_whole_number_or_unknown(value: object, expected: int | None) -> None:
    assert count({"usage": {"output_tokens": value}}, "usage", "output_tokens") == expected
    assert count({"output_tokens": value}, "output_tokens") == expected
    assert count(value, "output_tokens") is None


@pytest.mark.parametrize("value", [-1, True, 1.0, "0", None, MAX_INDEX], ids=repr)
def test_what_is_no_small_whole_number_is_no_index(value: object) -> None:
    assert not is_index(value)
    assert is_index(0) and is_index(MAX_INDEX - 1)


@pytest.mark.parametrize(("value", "expected"), [("a", "a"), (1, ""), (None, ""), (["a"], "")])
def test_a_word_is_text_or_nothing(value: object, expected: str) -> None:
    assert word(value) == expected
