"""A chain is encoded in pieces that are tokenized alone; a step is encoded whole or not at all."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import UsageError
from pipeline.scorers.encoding import check_separator, encode_chain
from tests.strategies import texts

SEPARATOR = "\n\n"
BOS = 1_114_112
chains = st.tuples(texts, st.lists(texts, max_size=6))


def characters(pieces: Sequence[str]) -> list[list[int]]:
    return [[ord(character) for character in piece] for piece in pieces]


def decoded(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


@given(chains)
def test_a_chain_that_fits_is_read_whole_and_every_step_ends_with_the_separator(chain: tuple[str, list[str]]) -> None:
    problem, steps = chain
    encoded = encode_chain(characters, problem, steps, separator=SEPARATOR, bos=None, max_length=10_000)
    assert decoded(encoded.ids) == "".join(text + SEPARATOR for text in (problem, *steps))
    assert encoded.left_out == 0
    assert len(encoded.ends) == len(steps)
    for number, end in enumerate(encoded.ends, start=1):
        assert decoded(encoded.ids[: end + 1]) == "".join(text + SEPARATOR for text in (problem, *steps[:number]))


@given(chains, st.integers(1, 200))
def test_what_does_not_fit_are_whole_steps_at_the_end_and_they_are_counted(
    chain: tuple[str, list[str]], max_length: int
) -> None:
    problem, steps = chain
    whole = encode_chain(characters, problem, steps, separator=SEPARATOR, bos=BOS, max_length=10_000)
    encoded = encode_chain(characters, problem, steps, separator=SEPARATOR, bos=BOS, max_length=max_length)
    assert len(encoded.ids) <= max_length
    assert encoded.ids == whole.ids[: len(encoded.ids)]
    assert encoded.ends == tuple(end for end in whole.ends if end < max_length) if encoded.ids else encoded.ends == ()
    assert len(encoded.ends) + encoded.left_out == len(steps)
    assert encoded.ids[:1] in ((BOS,), ())


def test_a_step_of_which_the_tokenizer_makes_nothing_ends_the_chain() -> None:
    def without_blanks(pieces: Sequence[str]) -> list[list[int]]:
        return [[ord(character) for character in piece if not character.isspace()] for piece in pieces]

    encoded = encode_chain(without_blanks, "ab", ["c", " ", "d"], separator="\n", bos=None, max_length=99)
    assert (decoded(encoded.ids), encoded.ends, encoded.left_out) == ("abc", (2,), 2)


def test_a_separator_that_is_no_token_is_refused() -> None:
    def without_blanks(texts: list[str], **_: object) -> dict[str, list[list[int]]]:
        return {"input_ids": [list(map(ord, text.strip())) for text in texts]}

    check_separator(without_blanks, ";")
    with pytest.raises(UsageError, match=r"separator='\\n' has no token"):
        check_separator(without_blanks, "\n")
