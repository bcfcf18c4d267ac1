"""The pure parts of the methods: ranking, resampling, votes, and where a chain turned bad."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.choices import Aggregation
from pipeline.config.search import SearchConfig
from pipeline.searches.base import Node, StepScore, Stop
from pipeline.searches.chains import lead_probability, vote
from pipeline.searches.choice import Candidates, Scored, distinct, rank, suffices, with_scores
from pipeline.searches.particle import copies, effective_size, relative_weights, systematic
from pipeline.searches.regenerate import start_step
from pipeline.searches.settings import RegenerateFrom

SCORES = st.none() | st.floats(0, 1)
WEIGHTS = st.lists(st.floats(-1e4, 0) | st.just(float("-inf")), min_size=1, max_size=20)


def scored(
    name: str, score: float | None, *, ended: bool = True, cut: bool = False, answer: str | None = None
) -> Scored:
    node = Node(
        node_id=name, parent=None, depth=1, text="x", prefix_id=f"p{name[0]}", ended=ended, cut=cut, answer=answer
    )
    return Scored(node=node, score=score)


@given(st.dictionaries(st.text("abc", min_size=1, max_size=4), SCORES, min_size=1), st.randoms())
def test_the_best_depends_on_no_order_and_an_unscored_chain_is_the_last(
    by_name: dict[str, float | None], rng: random.Random
) -> None:
    chains = [scored(name, score) for name, score in by_name.items()]
    ordered = sorted(chains, key=rank)
    rng.shuffle(chains)
    assert [each.node.node_id for each in sorted(chains, key=rank)] == [each.node.node_id for each in ordered]
    known = [each.score for each in ordered if each.score is not None]
    assert known == sorted(known, reverse=True)
    assert all(each.score is None for each in ordered[len(known) :])


@given(st.lists(SCORES, min_size=1, max_size=6))
def test_a_chain_with_an_unknown_step_has_no_score(scores: list[float | None]) -> None:
    node = scored("a", None).node
    for aggregation in Aggregation:
        found = with_scores(node, [StepScore(score=score) for score in scores], aggregation)
        assert (found.score is None) == (None in scores)


def test_candidates_end_and_are_there_once() -> None:
    made = Candidates(SearchConfig(accept=0.9))
    made.add([scored("a", 0.5), scored("b", 0.95, ended=False)])
    made.add([scored("a", 0.5), scored("c", 0.7)])
    assert [chain.node.node_id for chain in made.chains] == ["a", "c"]
    assert made.found().stopped is Stop.DONE
    made.add([scored("d", 0.91)])
    assert made.found().stopped is Stop.DONE, "it states no answer"
    made.add([scored("e", 0.91, answer="4", cut=True)])
    assert made.found().stopped is Stop.DONE, "a limit cut it"
    made.add([scored("f", 0.91, answer="4")])
    assert made.found().stopped is Stop.ACCEPTED


def test_a_chain_suffices_where_score_and_reliability_do() -> None:
    sure, unsure = SearchConfig(accept=0.9, reliability=0.5), SearchConfig(accept=0.9)
    good = scored("a", 0.9, answer="4")
    assert suffices(good, unsure)
    assert not suffices(scored("a", 0.9), unsure)
    assert not suffices(good, sure)
    assert not suffices(scored("a", 0.89, answer="4"), unsure)
    assert not suffices(scored("a", None, answer="4"), unsure)
    assert not suffices(good, SearchConfig())


def test_equal_texts_are_one_but_for_their_end() -> None:
    chains = [scored("a1", 0.1), scored("a2", 0.1), scored("a3", 0.1, ended=False), scored("b", None)]
    assert [each.node.node_id for each in distinct(chains)] == ["a1", "a3", "b"]


@given(WEIGHTS, st.integers(0, 2**32))
def test_systematic_resampling_draws_each_particle_as_often_as_its_share_says(weights: list[float], seed: int) -> None:
    shares = relative_weights(weights, [0.0] * len(weights))
    n = len(shares)
    assert sum(shares) == pytest.approx(1)
    assert 1 - 1e-9 <= effective_size(shares) <= n + 1e-9
    drawn = systematic(shares, random.Random(seed))
    counts = Counter(drawn)
    assert len(drawn) == n
    assert drawn == sorted(drawn)
    for at, share in enumerate(shares):
        assert abs(counts[at] - n * share) < 1 + 1e-6
        assert share > 0 or not counts[at]


def test_systematic_resampling_is_unbiased() -> None:
    shares = [0.1, 0.25, 0.65]
    counts = Counter(at for seed in range(4_000) for at in systematic(shares, random.Random(seed)))
    for at, share in enumerate(shares):
        # The standard deviation of a count of 3 draws is at most 1/2.
        assert counts[at] / 4_000 == pytest.approx(3 * share, abs=4 * 0.5 / 4_000**0.5)


@given(WEIGHTS, st.floats(-50, 50))
def test_weights_count_relative_to_what_was_drawn_for(weights: list[float], shift: float) -> None:
    bases = [0.0] * len(weights)
    assert relative_weights([weight + shift for weight in weights], bases) == pytest.approx(
        relative_weights(weights, bases), abs=1e-6
    )
    same = relative_weights(weights, weights)
    finite = [weight != float("-inf") for weight in weights]
    expected = 1 / sum(finite) if any(finite) else 1 / len(weights)
    assert same == pytest.approx([expected if each or not any(finite) else 0.0 for each in finite])


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_copies_of_a_particle_have_numbers_of_their_own(names: list[str]) -> None:
    numbers = copies([scored(name, None) for name in names])
    assert len(set(zip(names, numbers, strict=True))) == len(names)


@pytest.mark.parametrize(("first", "second", "probability"), [(0, 0, 0.5), (1, 0, 0.75), (4, 0, 0.96875), (2, 2, 0.5)])
def test_the_probability_of_a_lead(first: int, second: int, probability: float) -> None:
    assert lead_probability(first, second) == pytest.approx(probability)


@given(st.integers(0, 60), st.integers(0, 60))
def test_a_lead_is_a_coin_that_falls_fair(first: int, second: int) -> None:
    """Beta(a + 1, b + 1) exceeds 1/2 as often as a + b + 1 fair coins show at most a heads."""
    assert lead_probability(first, second) + lead_probability(second, first) == pytest.approx(1)
    assert lead_probability(first + 1, second) >= lead_probability(first, second)


@given(st.lists(st.tuples(st.sampled_from([None, "1", "2", "3"]), SCORES), max_size=12), st.booleans(), st.randoms())
def test_a_vote_depends_on_no_order(
    said: list[tuple[str | None, float | None]], weighted: bool, rng: random.Random
) -> None:
    def groups(answers: object) -> list[int | None]:
        return [None if answer is None else int(answer) for answer in answers]  # type: ignore[attr-defined]

    chains = [scored(f"{number:02d}", score, answer=answer) for number, (answer, score) in enumerate(said)]
    won = vote(chains, groups, weighted=weighted)
    if all(answer is None for answer, _ in said):
        assert won is None
        return
    assert won is not None
    rng.shuffle(chains)
    again = vote(chains, groups, weighted=weighted)
    assert again is not None
    assert (again.share, again.lead) == (won.share, won.lead)
    assert {each.node.node_id for each in again.chains} == {each.node.node_id for each in won.chains}
    answers = [answer for answer, _ in said if answer is not None]
    leading = won.chains[0].node.answer
    assert 0 <= won.share <= 1
    if not weighted:
        assert answers.count(str(leading)) == max(map(answers.count, answers))
        assert won.share == pytest.approx(len(won.chains) / len(answers))


DROP, WEAKEST = RegenerateFrom.largest_drop, RegenerateFrom.weakest


@pytest.mark.parametrize(
    ("scores", "start", "firsts", "step"),
    [
        ([0.9, 0.3, 0.2], DROP, [0.9], 1),
        ([0.9, 0.3, 0.2], WEAKEST, [0.9], 2),
        ([0.2, 0.3, 0.4], WEAKEST, [0.2], 0),
        ([0.2, 0.1, 0.05], DROP, [0.2], 1),
        ([0.2, 0.1, 0.05], DROP, [0.2, 0.9, 0.9], 0),
        ([0.5, 0.5, 0.5], DROP, [0.5], 0),
        ([0.5, 0.5, 0.5], WEAKEST, [0.5], 0),
        ([0.9, None, 0.1], DROP, [0.9], 2),
        ([None, 0.9, 0.8], DROP, [], 2),
        ([None, None], DROP, [], 0),
        ([None, None], WEAKEST, [], 0),
        ([], DROP, [], 0),
    ],
)
def test_where_a_chain_is_written_again(
    scores: list[float | None], start: RegenerateFrom, firsts: list[float], step: int
) -> None:
    assert start_step([StepScore(score=score) for score in scores], start, firsts) == step
