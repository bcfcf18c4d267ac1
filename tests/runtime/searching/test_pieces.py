"""Steps that are cut while they are written are those of the whole chain, and consist of the tokens that were written."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from pipeline.config.choices import Splitter
from pipeline.core.records import Finish
from pipeline.data.prompts import cut_on_tokens
from pipeline.data.steps import split
from pipeline.runtime.searching.pieces import CHUNK, MOST_HELD, PEEK
from pipeline.searches.base import WHOLE
from tests import strategies as our
from tests.runtime.searching.writing import PROMPT, ByHeart, Bytes, Pieces, config, sampled, texts_of

PATTERN = r"[;。]\s*|\n(?=Step)"
SPLITTERS = st.sampled_from([splitter for splitter in Splitter if splitter is not Splitter.whole])
ANY_TOKENS = our.tokenised().map(lambda tokens: [token.encode() for token in tokens]) | our.byte_tokens()
TAG_IN_WORD = re.compile(r"(?<!\w)ки\w")
"""What a word that begins like the tag looks like when the tag is written."""


def whole_steps(pieces: Sequence[bytes], splitter: Splitter) -> list[str]:
    """The trimmed steps of the whole text, cut on its tokens."""
    tokenizer, ids = Pieces(pieces), range(len(pieces))
    text = tokenizer.decode(ids)
    cut = cut_on_tokens(text, split(text, splitter, PATTERN), ids, tokenizer.decode)
    return [text[begin:end].strip() for begin, end in zip((0, *cut.ends), cut.ends, strict=False)]


def readable(pieces: Sequence[bytes], splitter: Splitter) -> bool:
    """Whether a chain is text, without what the cutter does not cover."""
    try:
        text = b"".join(pieces).decode()
    except UnicodeDecodeError:
        return False
    return splitter is not Splitter.math_shepherd or TAG_IN_WORD.search(text) is None


@given(ANY_TOKENS, SPLITTERS, st.integers(1, 3), st.integers(1, 6))
@example([b"a.\n", b"\n", b"b"], Splitter.newline, 1, 4)
@example([b"a\nb", b" \n", b"c"], Splitter.newline, 1, 4)
@example([b"$a\n", b"b$\n", b"c"], Splitter.newline, 1, 4)
@example([b"It costs $5\n", b"and $7\n"], Splitter.newline, 1, 4)
@example([b"Add 2 etc. ", b"of it. ", b"So"], Splitter.sentence, 1, 1)
@example([b"It is 1", b"2. A", b" b. C"], Splitter.sentence, 1, 1)
@example([b"\xe3\x80\x82", b"\xe3\x80\x82"], Splitter.sentence, 1, 1)
@example([b"\xe3", b"\x80", b"\x82", b"\xc3", b"\xa9"], Splitter.sentence, 1, 2)
@example([b"\xd0", b"\xba\xd0", b"\xb8 ", b"a"], Splitter.math_shepherd, 1, 4)
def test_steps_that_are_cut_while_they_are_written_are_those_of_the_whole_chain(
    pieces: list[bytes], splitter: Splitter, steps: int, chunk: int
) -> None:
    assume(readable(pieces, splitter))
    policy = ByHeart(Pieces(pieces), range(len(pieces)))
    data = config(splitter, PATTERN if splitter is Splitter.regex else None)
    answers = sampled(policy, data, steps=steps, chunk=chunk)
    found = texts_of(answers)
    assert [text.strip() for text in found] == whole_steps(pieces, splitter)
    assert all(text.strip() for text in found), "no step is blank"
    kept = [token for answer in answers for token in answer.token_ids]
    assert kept == list(range(len(kept))), "what is kept are the tokens that were written, from the first on"
    assert not b"".join(pieces[len(kept) :]).strip(), "no token with text is left out"
    assert [answer.ended for answer in answers] == [False] * (len(answers) - 1) + [True]
    assert answers[-1].finish is Finish.STOP
    assert sum(answer.n_tokens for answer in answers) == policy.written
    prompts = {request.prefix.prefix_id: request.prefix.prompt_ids for request in policy.asked}
    assert all(prompts[request.prefix.prefix_id] == request.prefix.prompt_ids for request in policy.asked)


@given(ANY_TOKENS, SPLITTERS)
def test_a_whole_chain_has_the_steps_of_its_text(pieces: list[bytes], splitter: Splitter) -> None:
    policy = ByHeart(Pieces(pieces), range(len(pieces)))
    (answer,) = sampled(policy, config(splitter, PATTERN if splitter is Splitter.regex else None), steps=WHOLE)
    assert [text.strip() for text in texts_of([answer])] == whole_steps(pieces, splitter)
    (request,) = policy.asked
    assert request.stop == ()
    assert answer.token_ids == tuple(range(len(answer.token_ids)))


@given(ANY_TOKENS, SPLITTERS, st.integers(0, 2))
def test_what_engines_do_not_know_costs_tokens_alone(pieces: list[bytes], splitter: Splitter, lack: int) -> None:
    """An engine that leaves the stop out of its text, that knows no stops, or that gives no tokens."""
    assume(readable(pieces, splitter))
    text = b"".join(pieces).decode()
    # A server without tokens that trims too says the same at a step's end and at the chain's.
    policy = ByHeart(Bytes(), list(text.encode()), trims=lack == 0, deaf=lack == 1, textual=lack == 2)
    found = texts_of(sampled(policy, config(splitter, PATTERN if splitter is Splitter.regex else None)))
    ends = split(text, splitter, PATTERN)
    wanted = [text[begin:end].strip() for begin, end in zip((0, *ends), ends, strict=False)]
    assert [step.strip() for step in found] == wanted


def in_bytes(text: str) -> ByHeart:
    return ByHeart(Bytes(), list(text.encode()))


def test_an_engine_stops_at_the_end_of_the_step() -> None:
    policy = in_bytes("One.\nTwo.\nThree.")
    answers = sampled(policy, config(Splitter.newline))
    assert [answer.text for answer in answers] == ["One.\n", "Two.\n", "Three."]
    assert [answer.n_tokens for answer in answers] == [5, 5, 7], "the last one with the token that ends the turn"
    assert [answer.n_prompt_tokens for answer in answers] == [PROMPT, PROMPT + 5, PROMPT + 10]
    assert [request.stop for request in policy.asked] == [("\n",)] * 3


def test_a_chain_that_ends_with_a_line_end_has_a_blank_end() -> None:
    *steps, last = sampled(in_bytes("One.\nTwo.\n"), config(Splitter.newline))
    assert texts_of(steps) == ["One.\n", "Two.\n"]
    assert (last.text, last.step_ends, last.token_ids, last.ended) == ("", (), (), True)
    assert last.finish is Finish.STOP


def test_what_follows_the_step_is_dropped_and_counted() -> None:
    policy = in_bytes("It is so. And then it is not so any more, as everybody knows who has seen it. Yes.")
    answers = sampled(policy, config(Splitter.sentence))
    assert texts_of(answers)[0] == "It is so. "
    assert answers[0].n_tokens == CHUNK
    assert [request.max_tokens for request in policy.asked][:2] == [CHUNK, CHUNK]
    assert sum(answer.n_tokens for answer in answers) > len(policy.tokens)


def test_a_line_that_ends_within_a_formula_goes_on() -> None:
    text = "So $$a = 1\n + 2$$\nand \\[b\n\n= 3\\]\nDone."
    assert texts_of(sampled(in_bytes(text), config(Splitter.newline))) == [
        "So $$a = 1\n + 2$$\n",
        "and \\[b\n\n= 3\\]\n",
        "Done.",
    ]


def test_an_amount_of_money_costs_a_few_tokens_more() -> None:
    text = "She pays $5\nfor each of them\n" * 20
    answers = sampled(in_bytes(text), config(Splitter.newline))
    assert texts_of(answers) == ["She pays $5\n", "for each of them\n"] * 20
    assert sum(answer.n_tokens for answer in answers) <= len(text) + 20 * PEEK + 1


def test_a_formula_that_nobody_closes_is_none() -> None:
    text = "Let \\[ be.\n" + "This is another line of it.\n" * 40
    policy = in_bytes(text)
    steps = texts_of(sampled(policy, config(Splitter.newline)))
    assert "".join(steps) == text
    assert len(steps) == 41
    # It is waited for after the line in which it begins and after the next one, which is cut after it.
    assert policy.written <= len(text) + 2 * (MOST_HELD + CHUNK + 30) + 1


def test_a_policy_that_writes_blank_lines_alone_ends() -> None:
    policy = in_bytes("\n" * 5_000)
    (answer,) = sampled(policy, config(Splitter.newline), max_tokens=1_000)
    assert (answer.text, answer.ended, answer.finish, answer.n_tokens) == ("", True, Finish.LENGTH, 1_000)
    assert len(policy.asked) < 30


@pytest.mark.parametrize("splitter", [Splitter.newline, Splitter.sentence, Splitter.whole])
def test_chains_that_never_end_are_cut_at_the_limits(splitter: Splitter) -> None:
    text = "This is so. \n" * 200
    answers = sampled(in_bytes(text), config(splitter), max_tokens=100)
    assert (answers[-1].ended, answers[-1].finish) == (True, Finish.LENGTH)
    assert sum(len(answer.token_ids) for answer in answers) == 100
    answers = sampled(in_bytes(text), config(splitter), context=PROMPT + 50)
    assert sum(len(answer.token_ids) for answer in answers) == 50
    assert answers[-1].ended


@pytest.mark.parametrize("steps", [1, 3, WHOLE])
def test_a_chain_of_the_most_steps_ends_there(steps: int) -> None:
    answers = sampled(in_bytes("This is so.\n" * 200), config(Splitter.newline), steps=steps, max_steps=7)
    assert texts_of(answers) == ["This is so.\n"] * 7
    assert [answer.ended for answer in answers][-1:] == [True]
    assert answers[-1].finish is Finish.LENGTH


def test_a_problem_that_fills_the_context_is_not_sampled() -> None:
    policy = in_bytes("So.")
    (answer,) = sampled(policy, config(Splitter.newline), context=PROMPT)
    assert (answer.ended, answer.finish, answer.n_tokens, policy.asked) == (True, Finish.TOO_LONG, 0, [])


class Boxed:
    """An answer is what stands in a box, once its line has ended."""

    def may_state(self, piece: str) -> bool:
        return "box" in piece

    def complete(self, text: str) -> bool:
        return "box" in text[: text.rfind("\n") + 1]


@pytest.mark.parametrize("splitter", [Splitter.newline, Splitter.sentence])
def test_a_chain_ends_with_the_step_that_states_its_answer(splitter: Splitter) -> None:
    policy = in_bytes("It is so. \nThe box of it. \nNo, it is not. \nAnd more. \n")
    answers = sampled(policy, config(splitter), ending=Boxed())
    assert [text.strip() for text in texts_of(answers)] == ["It is so.", "The box of it."]
    assert (answers[-1].ended, answers[-1].finish) == (True, Finish.STOP)


@given(st.text("a \n", max_size=30), st.integers(1, 12))
def test_no_limit_is_exceeded(text: str, most: int) -> None:
    answers = sampled(in_bytes(text), config(Splitter.newline), max_tokens=most)
    assert sum(len(answer.token_ids) for answer in answers) <= most
    assert answers[-1].ended
    assert "".join(texts_of(answers)).strip() == text[:most].strip()
