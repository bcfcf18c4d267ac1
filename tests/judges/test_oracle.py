"""`judge=oracle`: its votes have a known confusion about the oracle policy's truth; the lab's has the chosen one."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipeline.core.errors import EngineDied
from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Critique, Finish, ReadingKind
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import value_of
from pipeline.judges.base import wrong_critiques
from pipeline.judges.oracle import Confusion
from pipeline.judges.registry import judge_for, open_judge
from pipeline.judges.settings import OracleJudgeConfig, OracleVotes
from tests.judges.scripted import chain
from tests.oracles.lab import LabJudgeConfig, LabVotes

STEPS = 4
CHAINS = [chain(number, *["s"] * STEPS) for number in range(3000)]
CONFUSION: dict[str, Any] = {"exact": 0.5, "early": 0.2, "late": 0.15, "false_alarm": 0.3}


def votes_of(chains: Sequence[ChainText], *, votes: int = 1, attempt: int = 1, **own: Any) -> list[Sequence[Critique]]:
    settings = LabJudgeConfig(name="lab", votes=votes, oracle=OracleVotes(seed=own.pop("seed", 0)), lab=LabVotes(**own))

    async def work() -> list[Sequence[Critique]]:
        engine = open_judge(settings, None, Surroundings(attempt=attempt))
        await engine.start()
        return [await engine.critiques(each) for each in chains]

    found = asyncio.run(asyncio.wait_for(work(), 30))
    assert not any(wrong_critiques(each, of, votes) for each, of in zip(found, chains, strict=True))
    return found


def truth(of: ChainText) -> int | None:
    values = [value_of(0, 0.35, of.problem_id, prefix_id) for prefix_id in of.prefix_ids]
    return next((at for at, value in enumerate(values, start=1) if value <= 0.5), None)


def position(critique: Critique) -> int:
    """As in `Confusion.probabilities`."""
    return STEPS if critique.reading.first_error is None else critique.reading.first_error - 1


def test_votes_have_the_chosen_confusion_about_the_oracle_policys_truth() -> None:
    confusion, found = Confusion(**CONFUSION), votes_of(CHAINS, **CONFUSION)
    for error in (None, *range(1, STEPS + 1)):
        counts = Counter(position(each[0]) for each, of in zip(found, CHAINS, strict=True) if truth(of) == error)
        total = sum(counts.values())
        assert total > 50
        pairs = [
            (counts[at], share * total) for at, share in enumerate(confusion.probabilities(STEPS, error)) if share > 0
        ]
        assert sum(count for count, _ in pairs) == total
        observed, expected = ([pair[side] for pair in pairs] for side in (0, 1))
        assert chisquare(observed, expected).pvalue > 1e-3


def test_critiques_depend_on_seed_chain_and_vote_alone() -> None:
    some = CHAINS[:50]
    assert votes_of(some, votes=3) == list(reversed(votes_of(some[::-1], votes=3)))
    for more, fewer in zip(votes_of(some, votes=5), votes_of(some, votes=2), strict=True):
        assert more[:2] == fewer
    assert votes_of(some) != votes_of(some, seed=1)
    other = [replace(each, chain_id=content_id("other", each.chain_id)) for each in some]
    assert votes_of(some) != votes_of(other)


def test_critiques_are_texts_that_the_judge_reads_again() -> None:
    judge = judge_for(OracleJudgeConfig(name="oracle"))
    assert not judge.writes
    for (critique,) in votes_of(CHAINS[:200], unparseable=0.2):
        (text,) = critique.turns
        assert judge.read((text,), Finish.STOP, STEPS) == critique.reading
        assert critique.n_tokens == len(text)
    assert judge.read((r"It is \boxed{7}",), Finish.STOP, STEPS).kind is ReadingKind.OUT_OF_RANGE


def test_faults_are_the_chosen_ones() -> None:
    with pytest.raises(EngineDied, match=r"judge\.lab\.fail_after"):
        votes_of(CHAINS[:9], fail_after=5)
    assert len(votes_of(CHAINS[:9], fail_after=5, attempt=2)) == 9
    with pytest.raises(EngineDied, match=r"judge\.lab\.poison"):
        votes_of(CHAINS[:9], poison=CHAINS[4].chain_id[:12], attempt=2)
    settings = LabJudgeConfig(name="lab", lab=LabVotes(hang_after=1))

    async def hung() -> None:
        engine = open_judge(settings, None, Surroundings())
        await engine.critiques(CHAINS[0])
        await asyncio.wait_for(engine.critiques(CHAINS[1]), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(hung())


_shares = st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))


@st.composite
def confusions(draw: st.DrawFn) -> Confusion:
    exact, early, late, none, alarm = draw(_shares)
    total = exact + early + late + none or 1.0
    return Confusion(exact=exact / total, early=early / total, late=late / total, false_alarm=alarm)


@given(confusions(), st.integers(1, 9), st.data())
def test_probabilities_are_a_distribution_with_the_confusions_shares(
    confusion: Confusion, steps: int, data: st.DataObject
) -> None:
    alarms = confusion.probabilities(steps, None)
    assert sum(alarms) == pytest.approx(1)
    assert alarms[:-1] == pytest.approx([confusion.false_alarm / steps] * steps)
    error = data.draw(st.integers(1, steps))
    found = confusion.probabilities(steps, error)
    assert len(found) == steps + 1
    assert min(found) >= 0
    assert sum(found) == pytest.approx(1)
    if 1 < error < steps:
        assert found[error - 1] == pytest.approx(confusion.exact, abs=1e-9)
        assert sum(found[: error - 1]) == pytest.approx(confusion.early, abs=1e-9)
        assert sum(found[error:steps]) == pytest.approx(confusion.late, abs=1e-9)


def test_what_cannot_be_goes_to_the_others_in_their_proportion() -> None:
    confusion = Confusion(exact=0.4, early=0.2, late=0.2, false_alarm=0.3)
    assert confusion.probabilities(3, 1) == pytest.approx((0.5, 0.125, 0.125, 0.25))
    assert confusion.probabilities(3, 3) == pytest.approx((0.125, 0.125, 0.5, 0.25))
    assert confusion.probabilities(1, 1) == pytest.approx((2 / 3, 1 / 3))
    assert Confusion(exact=0, early=1, late=0, false_alarm=0).probabilities(2, 1) == (1.0, 0.0, 0.0)
    assert confusion.probabilities(0, None) == (1.0,)
