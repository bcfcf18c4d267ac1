"""What `grow` promoted, as chains like any other: their texts, steps and prefixes are those of the rollouts that wrote them."""

from itertools import accumulate, pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.records import Chain, Prefix, Problem, Promotion, Solution
from pipeline.data.grown import grown_chains, grown_id, grown_prefixes, grown_solution, in_rounds
from pipeline.data.prompts import stem
from pipeline.data.steps import step_texts

PROBLEM = Problem(problem_id="p", text="?", golds=("1",))
_TEXTS = st.lists(st.text("ab 1", min_size=1, max_size=5).map(lambda text: f"x{text}\n"), min_size=1, max_size=4)


def solution(texts: list[str], *, as_written: bool = False) -> Solution:
    return Solution(
        chain_id="c",
        problem_id="p",
        source_id="row",
        text="".join(texts),
        ends=tuple(accumulate(map(len, texts))),
        as_written=as_written,
    )


def chain(texts: list[str], name: str = "c") -> Chain:
    ids = [f"{name} {number}" for number in range(len(texts) + 1)]
    made = solution(texts)
    return Chain(
        problem=PROBLEM, solution=made, root_prefix_id="root", prefix_ids=tuple(ids[1:]), final_answer="1", outcome=True
    )


def promotion(prefix_id: str, texts: list[str], place: int = 0, **more: int) -> Promotion:
    """One of steps whose tokens are their characters."""
    text = "".join(texts)
    ends = tuple(accumulate(map(len, texts)))
    return Promotion(
        chain_id=f"{prefix_id} {text!r}",
        problem_id="p",
        growth=more.get("growth", 0),
        round=more.get("round", 0),
        place=place,
        rollout_id="r",
        prefix_id=prefix_id,
        begin=0,
        text=text,
        token_ids=tuple(map(ord, text)),
        ends=ends,
        token_ends=ends,
        rollouts=8,
        gain=1.0,
        cost=8.0,
    )


@given(_TEXTS, _TEXTS, st.booleans(), st.data())
def test_a_promoted_chain_is_the_text_that_the_policy_saw_and_wrote(
    before: list[str], texts: list[str], as_written: bool, data: st.DataObject
) -> None:
    base = solution(before, as_written=as_written)
    steps = data.draw(st.integers(0, len(before)))
    made = grown_solution(base, steps, promotion("x", texts))
    assert made.text == stem(base, steps) + "".join(texts)
    assert made.ends[-1] == len(made.text)
    assert all(begin < end for begin, end in pairwise((0, *made.ends)))
    assert step_texts(made.text, made.ends) == [text.strip() for text in (*before[:steps], *texts)]
    assert stem(made, steps) == stem(base, steps) if steps else stem(made, 0) == ""
    assert (made.complete, made.as_written, made.chain_id) == (False, True, promotion("x", texts).chain_id)


@given(_TEXTS)
def test_prefixes_end_where_steps_end_in_text_and_tokens(texts: list[str]) -> None:
    base = Prefix(prefix_id="b", step_index=2, text="seen\n", prompt_ids=(7, 8))
    made = promotion("b", texts)
    found = grown_prefixes(base, made)
    assert [each.step_index for each in found] == [3 + number for number in range(len(texts))]
    for number, each in enumerate(found, start=1):
        written = "".join(texts[:number])
        assert each.text == base.text + written
        assert each.prompt_ids == (7, 8, *map(ord, written))
        assert each.prefix_id == grown_id(made, number)
    # Ids follow from the prefix before and from the tokens, and from nothing else.
    again = promotion("b", texts, place=9, growth=3)
    assert [grown_id(again, number) for number in range(1, len(texts) + 1)] == [each.prefix_id for each in found]
    assert len({each.prefix_id for each in found} | {grown_id(promotion("other", texts), 1)}) == len(found) + 1


@given(_TEXTS, st.lists(_TEXTS, min_size=1, max_size=4), st.data())
def test_a_promotion_may_continue_another_one_of_its_round(
    before: list[str], pieces: list[list[str]], data: st.DataObject
) -> None:
    steps = data.draw(st.integers(0, len(before)))
    base = chain(before)
    at = (base.root_prefix_id, *base.prefix_ids)[steps]
    made: list[Promotion] = []
    for place, texts in enumerate(pieces):
        made.append(promotion(at, texts, place))
        at = grown_id(made[-1], len(texts))
    own, *grown = grown_chains([base], made)
    assert (own.grown, own.prefix_ids) == (False, base.prefix_ids)
    assert len(grown) == len(pieces)
    written: list[str] = []
    for each, texts in zip(grown, pieces, strict=True):
        written += texts
        assert step_texts(each.solution.text, each.solution.ends) == [
            text.strip() for text in (*before[:steps], *written)
        ]
        assert len(each.prefix_ids) == len(set(each.prefix_ids)) == len(each.solution.ends)
        assert (each.grown, each.outcome, each.final_answer) == (True, None, None)
    for shorter, longer in pairwise(grown):
        assert longer.prefix_ids[: len(shorter.prefix_ids)] == shorter.prefix_ids


def test_promotions_of_prefixes_that_no_chain_has_are_left_out() -> None:
    (only,) = grown_chains([chain(["a\n"])], [promotion("nowhere", ["b\n"])])
    assert only.grown is False


@given(st.randoms(use_true_random=False))
def test_promotions_are_in_the_order_of_growths_and_rounds(random: Random) -> None:
    ordered = [
        promotion("c 1", ["a\n"], place, growth=growth, round=number)
        for growth in range(2)
        for number in range(2)
        for place in range(2)
    ]
    shuffled = list(ordered)
    random.shuffle(shuffled)
    assert in_rounds(shuffled) == ordered
