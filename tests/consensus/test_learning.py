"""What is learned of Monte Carlo and judges where the truth is known, and the labels that follow; sown bugs are found."""

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.consensus import parameters
from pipeline.consensus.blocks import Outcome, blocks_of
from pipeline.consensus.confusion import Confusion, Way
from pipeline.consensus.evidence import ChainEvidence, Claim, PositionClaim, StepClaim
from pipeline.consensus.learning import Learned, learn
from pipeline.consensus.maximum import Data, maximum
from pipeline.consensus.model import Model, loss_in, overview_of, voters_in
from pipeline.consensus.parameters import priors_for
from pipeline.consensus.posterior import p_error_free, posterior, posterior_labels
from pipeline.core.statistics import Floats
from tests.consensus.oracles import JudgeWorld, Sample, World, judge_cells, monte_carlo_cells, sample

pytestmark = pytest.mark.slow

CHAINS = 1_000
STEPS = (2, 5, 8)
CERTAINTY = 0.95
MIDDLE = World(steps=STEPS)
WEAK = World(steps=STEPS, early=0.3, late=0.05, repaired=0.1)
REPEATING = World(steps=STEPS, judges={"judge": JudgeWorld(exact=0.45, early=0.2, late=0.2, correlation=0.95, votes=8)})
CHANCE = World(steps=STEPS, judges={"judge": JudgeWorld(anywhere=True, alarm=0.6)})
TWO = World(steps=STEPS, early=0.2, judges={"one": JudgeWorld(), "two": JudgeWorld(exact=0.3, early=0.2, late=0.2)})
HIDDEN = World(steps=STEPS, repaired=0.2, judges={"judge": JudgeWorld(missed_if_right=0.5)})
ALWAYS = World(steps=STEPS, judges={"judge": JudgeWorld(always=0)})
WORLDS = {"middle": MIDDLE, "weak": WEAK, "repeating": REPEATING, "chance": CHANCE, "two": TWO, "hidden": HIDDEN}


def labels_of(found: Sample, places: list[Floats]) -> tuple[float, float, int]:
    """Of the labels that are certain: their probability, the share of right ones, and their number."""
    stated, right = [], []
    for each, true in zip(places, found.truth.tolist(), strict=True):
        free = p_error_free(each)
        for step, label in enumerate(posterior_labels(each, CERTAINTY)):
            if label is not None:
                stated.append(free[step] if label else each[step])
                right.append(true > step if label else true == step)
    return float(np.mean(stated)), float(np.mean(right)), len(right)


def found_right(found: Sample, places: list[Floats]) -> float:
    """The share of chains whose first error, or that they have none, is the most probable place."""
    return float(np.mean([each.argmax() == true for each, true in zip(places, found.truth.tolist(), strict=True)]))


def places_in(evidence: list[ChainEvidence]) -> list[Floats]:
    return posterior(evidence, learn(evidence))


@cache
def studied(name: str) -> tuple[Sample, list[Floats]]:
    """A sample of a world, and what is learned of its chains: once, for all that is asked of it."""
    found = sample(WORLDS[name], CHAINS, 1)
    return found, places_in(found.evidence)


def certain_labels_are_right(found: Sample, places: list[Floats]) -> None:
    stated, right, count = labels_of(found, places)
    assert count > CHAINS
    assert stated >= CERTAINTY
    assert right >= stated - 0.02


@pytest.mark.parametrize("name", WORLDS)
def test_certain_labels_are_right_as_often_as_stated(name: str) -> None:
    certain_labels_are_right(*studied(name))


def test_votes_as_independent_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sown bug: eight votes that repeat each other count as eight opinions."""
    monkeypatch.setattr(Model, "_concentration", lambda _model, _name: 1e5)
    found, _ = studied("repeating")
    places = places_in(found.evidence)
    with pytest.raises(AssertionError):
        certain_labels_are_right(found, places)


def test_monte_carlo_taken_at_its_word_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sown bug: a policy that loses chains before their error is believed."""
    error = (1e6, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0)
    believed = {outcome: {**rows, "error": error} for outcome, rows in parameters.MONTE_CARLO_PRIOR.items()}
    monkeypatch.setattr(parameters, "MONTE_CARLO_PRIOR", believed)
    found, _ = studied("weak")
    places = places_in(found.evidence)
    with pytest.raises(AssertionError):
        certain_labels_are_right(found, places)


def cells_hold_the_truth(*worlds: World) -> None:
    held = []
    for seed, world in enumerate(worlds):
        many = sample(replace(world, judges={}), 20_000, 99)
        for cell in learn(sample(world, CHAINS, seed).evidence).cells:
            right = cell.outcome is Outcome.RIGHT
            judge = cell.witness and world.judges[cell.witness]
            true = judge_cells(judge, many, right) if judge else monte_carlo_cells(many, right)
            held.append(abs(cell.value - true[cell.truth, str(cell.way)]) <= 2 * cell.error)
            assert cell.low <= cell.value <= cell.high
    assert len(held) >= 15 * len(worlds)
    assert np.mean(held) >= 0.9


@pytest.mark.nightly
def test_learned_cells_hold_the_truth_within_two_standard_errors() -> None:
    cells_hold_the_truth(*WORLDS.values())


@pytest.mark.nightly
def test_missing_phantoms_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sown bug: that the first step has none before it, and the last none after, counts as if the witness never erred so."""

    def taken(confusion: Confusion, steps: int, named: Floats) -> tuple[Floats, Floats]:
        error, free = with_phantoms(confusion, steps, named)
        lost = sum(float(row.sum()) for row in (named[0], named[steps - 1]))
        total = float(named[:-1].sum())
        shares = confusion.error.copy()
        shares[4] *= float(named[0].sum()) / max(total, 1e-300)
        shares[5] *= float(named[steps - 1].sum()) / max(total, 1e-300)
        return np.maximum(error - (total + lost) * shares, 0.0), free

    with_phantoms = Confusion.counts
    short = World(steps=(2, 3), judges={"judge": JudgeWorld(exact=0.3, early=0.35, late=0.25, correlation=0.0)})
    cells_hold_the_truth(short)
    monkeypatch.setattr(Confusion, "counts", taken)
    with pytest.raises(AssertionError):
        cells_hold_the_truth(short)


@pytest.mark.parametrize(("name", "margin"), [("middle", 0.03), ("weak", 0.05), ("two", 0.05), ("chance", -0.003)])
def test_a_judge_helps_and_one_that_guesses_does_not_hurt(name: str, margin: float) -> None:
    found, places = studied(name)
    alone = found.without(*WORLDS[name].judges)
    assert found_right(found, places) - found_right(found, places_in(alone)) >= margin


@pytest.mark.nightly
def test_a_judge_that_guesses_is_not_believed_in_a_large_run() -> None:
    """On the way to the maximum its votes, which repeat each other, look as if they were about something."""
    guesses = JudgeWorld(anywhere=True, alarm=0.6, correlation=0.6)
    found = sample(World(steps=(3, 6, 9), judges={"judge": guesses}), 6 * CHAINS, 3)
    learned = learn(found.evidence)
    assert learned.converged
    exact = {cell.witness: cell.value for cell in learned.cells if cell.truth == "error" and cell.way is Way.EXACT}
    assert exact["judge"] < 0.25
    alone = found.without("judge")
    with_judge = found_right(found, posterior(found.evidence, learned))
    assert with_judge >= found_right(found, posterior(alone, learn(alone))) - 0.003


@pytest.mark.parametrize("chains", [30, pytest.param(300, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("world", [*WORLDS.values(), ALWAYS], ids=[*WORLDS, "always"])
def test_learning_ends_at_a_maximum(world: World, chains: int) -> None:
    found = sample(world, chains, 9).evidence
    blocks = blocks_of(found)
    overview = overview_of(blocks)
    data = Data(
        overview=overview,
        blocks=[(block, loss_in(block, overview)) for block in blocks],
        priors=priors_for(voters_in(blocks), []),
    )
    top = maximum(data)
    assert top.converged
    highest = log_posterior(data, top.vector)
    for way in data.priors.directions().T:
        assert log_posterior(data, top.vector + 0.02 * way) < highest
        assert log_posterior(data, top.vector - 0.02 * way) < highest


def log_posterior(data: Data, vector: Floats) -> float:
    model = data.model(vector)
    return model.expect(data.blocks).log_likelihood + data.priors.log_density(model.parameters)


def test_a_judge_that_always_says_the_same_is_flagged_and_changes_little() -> None:
    places: list[Floats] = []
    for always, thing in ((0, "no error"), (1, "the first step"), (99, "the last step")):
        found = sample(replace(MIDDLE, judges={"judge": JudgeWorld(always=always)}), CHAINS, 3)
        learned = learn(found.evidence)
        assert learned.says_one_thing == {"judge": thing}
        # What Monte Carlo says does not depend on what the judge always says.
        places = places or places_in(found.without("judge"))
        pairs = zip(posterior(found.evidence, learned), places, strict=True)
        assert np.mean([abs(one - other).sum() / 2 for one, other in pairs]) <= 0.02


def test_a_judge_that_differs_says_no_one_thing() -> None:
    assert learn(sample(MIDDLE, 100, 0).evidence).says_one_thing == {}


def test_order_and_a_witness_that_says_nothing_change_nothing() -> None:
    found = sample(TWO, 300, 4).evidence
    order = np.random.default_rng(0).permutation(len(found)).tolist()
    silent = {"judge": PositionClaim((0.0,) * 9)}
    other = [
        replace(found[number], witnesses={**found[number].witnesses, **(silent if found[number].steps == 8 else {})})
        for number in order
    ]
    one, two = learn(found), learn(other)
    places = posterior(found, one)
    for number, again in zip(order, posterior(other, two), strict=True):
        assert again == pytest.approx(places[number], abs=1e-9)
    assert [cell.value for cell in two.cells] == pytest.approx([cell.value for cell in one.cells], abs=1e-9)


def test_it_is_stored_to_the_last_digit() -> None:
    found = sample(MIDDLE, 200, 5).evidence
    learned = learn(found)
    again = Learned.from_dict(json.loads(json.dumps(learned.as_dict())))
    assert again.as_dict() == learned.as_dict()
    for one, other in zip(posterior(found, learned), posterior(found, again), strict=True):
        assert (one == other).all()


def test_a_part_of_a_large_run_teaches_nearly_the_same() -> None:
    found = sample(MIDDLE, 4 * CHAINS, 6).evidence
    whole, part = learn(found), learn(found, most_cells=CHAINS * 40)
    assert part.chains == whole.chains == len(found)
    assert part.learned_from < len(found) / 2
    for one, other in zip(whole.cells, part.cells, strict=True):
        assert abs(one.value - other.value) <= 4 * other.error


def test_programs_that_check_steps_are_learned_too() -> None:
    rng = np.random.default_rng(7)
    found = sample(MIDDLE, CHAINS, 7)

    def verdict(step: int, true: int) -> int | None:
        draw = rng.random()
        if step == true:
            return 0 if draw < 0.8 else None if draw < 0.9 else 1
        return 1 if draw < 0.7 else None if draw < 0.98 else 0

    checked = [
        replace(chain, witnesses={"check": StepClaim(tuple(verdict(step, true) for step in range(chain.steps)))})
        for chain, true in zip(found.evidence, found.truth.tolist(), strict=True)
    ]
    learned = learn(checked)
    rows = learned.parameters.rows
    assert rows["witness", "check", "first_bad"] == pytest.approx([0.8, 0.1, 0.1], abs=0.06)
    assert rows["witness", "check", "good"] == pytest.approx([0.02, 0.7, 0.28], abs=0.03)
    alone = found.without("judge")
    assert found_right(found, posterior(checked, learned)) > found_right(found, posterior(alone, learn(alone))) + 0.05


def test_proofs_are_taken_as_they_are_from_the_first_one_on() -> None:
    found = sample(MIDDLE, 200, 8)
    alone = found.without("judge")
    before = posterior(alone, learn(alone))
    proved = [
        replace(
            chain,
            witnesses={"prover": StepClaim(steps, frozenset(at for at, said in enumerate(steps) if said is not None))},
        )
        for chain, true in zip(found.evidence, found.truth.tolist(), strict=True)
        for steps in [tuple(int(at != true) if at % 2 == 0 and at <= true else None for at in range(chain.steps))]
    ]
    learned = learn(proved)
    assert not [key for key in learned.parameters.rows if "prover" in key]
    after = posterior(proved, learned)
    for places, claim, true in zip(after, proved, found.truth.tolist(), strict=True):
        for at in range(0, claim.steps, 2):
            if at < true:
                assert places[at] == 0
            elif at == true:
                assert places[at + 1 :].sum() == 0
                assert places[at] == pytest.approx(1 - places[:at].sum())
    sure = [float(places[true]) for places, true in zip(after, found.truth.tolist(), strict=True)]
    unsure = [float(places[true]) for places, true in zip(before, found.truth.tolist(), strict=True)]
    assert np.mean(sure) > np.mean(unsure) + 0.05
    (one,) = posterior(proved[:1], learned)
    assert (one == after[0]).all()


def test_a_proof_is_worth_more_than_any_number_of_votes() -> None:
    votes = PositionClaim((0.0, 0.0, 500.0))
    chain = ChainEvidence(
        steps=2,
        outcome=True,
        monte_carlo=(0.0, 0.0, 1.0),
        witnesses={"judge": votes, "prover": StepClaim((None, 0), frozenset({1}))},
    )
    (places,) = posterior([chain], learn([chain]))
    assert places[-1] == 0
    assert places.sum() == pytest.approx(1)


def test_proofs_that_contradict_each_other_do_not_count() -> None:
    both = {"one": StepClaim((1, 0), frozenset({0, 1})), "other": StepClaim((None, 1), frozenset({1}))}
    said = (0.2, 0.3, 0.5)
    chain = ChainEvidence(steps=2, monte_carlo=said, witnesses=both)
    plain = ChainEvidence(steps=2, monte_carlo=said)
    learned = learn([plain])
    one, other = posterior([chain], learned)[0], posterior([plain], learned)[0]
    assert one == pytest.approx(other)


places_of = st.integers(1, 6).flatmap(
    lambda steps: st.lists(st.integers(0, 3), min_size=steps + 1, max_size=steps + 1).map(tuple)
)


@given(places_of, st.sampled_from([True, False, None]), st.data())
def test_posteriors_are_probabilities_and_a_vote_more_is_no_less_for_its_place(
    counts: tuple[int, ...], outcome: bool | None, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(counts) - 1))
    shares = data.draw(st.lists(st.floats(0.01, 1), min_size=len(counts), max_size=len(counts)))
    said = tuple(share / sum(shares) for share in shares)
    more = tuple(float(count + (at == place)) for at, count in enumerate(counts))

    def chain(votes: tuple[float, ...]) -> ChainEvidence:
        claims: dict[str, Claim] = {"judge": PositionClaim(votes)}
        return ChainEvidence(steps=len(counts) - 1, outcome=outcome, monte_carlo=said, witnesses=claims)

    learned = learn([chain(more)])
    before, after = posterior([chain(tuple(map(float, counts))), chain(more)], learned)
    assert before.sum() == pytest.approx(1)
    assert after.sum() == pytest.approx(1)
    assert min(before.min(), after.min()) >= 0
    if learned.model.table("judge", Outcome.WRONG, len(counts) - 1).argmax(axis=0)[place] == place:
        assert after[place] >= before[place] - 1e-9


@pytest.mark.parametrize("steps", [1, 2, 200])
@pytest.mark.parametrize("outcome", [True, False, None])
def test_chains_of_any_length_have_a_posterior(steps: int, outcome: bool | None) -> None:
    flat = (1 / (steps + 1),) * (steps + 1)
    votes = PositionClaim((*(0.0,) * (steps - 1), 2.0, 0.5))
    chains = [
        ChainEvidence(steps=steps, outcome=outcome),
        ChainEvidence(steps=steps, outcome=outcome, monte_carlo=flat, witnesses={"judge": votes}),
    ]
    nothing, something = posterior(chains, learn(chains))
    assert nothing.sum() == pytest.approx(1)
    assert something.sum() == pytest.approx(1)
    assert something[steps - 1] > nothing[steps - 1]


def test_without_chains_the_priors_are_all_there_is() -> None:
    learned = learn([])
    assert (learned.chains, learned.learned_from, learned.cells, learned.converged) == (0, 0, (), True)
    wrong, right = posterior([ChainEvidence(steps=2, outcome=False), ChainEvidence(steps=2, outcome=True)], learned)
    assert wrong == pytest.approx([0.49, 0.49, 0.02])
    assert right == pytest.approx([0.075, 0.075, 0.85])


def _chain(claim: Claim | None = None, monte_carlo: tuple[float, ...] | None = None) -> ChainEvidence:
    return ChainEvidence(steps=2, monte_carlo=monte_carlo, witnesses={} if claim is None else {"judge": claim})


@pytest.mark.parametrize(
    ("chain", "message"),
    [
        (ChainEvidence(steps=0), "chain 1: a chain without steps"),
        (_chain(PositionClaim((1.0, 1.0))), "chain 1: witness judge: votes for 2 of 3 places"),
        (_chain(PositionClaim((1.0, float("nan"), 0.0))), "negative or not finite"),
        (_chain(PositionClaim((1.0, -1.0, 0.0))), "negative or not finite"),
        (_chain(StepClaim((1,))), "verdicts on 1 of 2 steps"),
        (_chain(StepClaim((1, 2))), "other than 1, 0 and None"),
        (_chain(StepClaim((1, None), frozenset({1}))), "a proof of a step without a verdict"),
        (_chain(StepClaim((1, 0), frozenset({2}))), "a proof of a step without a verdict"),
        (_chain(StepClaim((1, 0))), "places on some chains and steps on others"),
        (_chain(monte_carlo=(1.0,)), "Monte Carlo: 1 probabilities for 3 places"),
        (_chain(monte_carlo=(1.0, 1.0, 0.0)), "a sum of at most 1"),
        (_chain(monte_carlo=(float("nan"), 1.0, 0.0)), "a sum of at most 1"),
    ],
)
def test_impossible_evidence_is_refused(chain: ChainEvidence, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        learn([_chain(PositionClaim((1.0, 0.0, 0.0))), chain])


def test_a_witness_that_nothing_was_learned_of_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing was learned of the witness judge"):
        posterior([_chain(PositionClaim((1.0, 0.0, 0.0)))], learn([_chain()]))


@given(st.integers(1, 12).flatmap(lambda steps: st.lists(st.floats(0, 1), min_size=steps + 1, max_size=steps + 1)))
def test_labels_say_what_the_posterior_says(weights: list[float]) -> None:
    places = np.array(weights) + 1e-3
    places /= places.sum()
    free = p_error_free(places)
    labels = posterior_labels(places, 0.8)
    assert (np.diff(free) <= 1e-12).all()
    assert free[-1] == pytest.approx(places[-1])
    for label, good, bad in zip(labels, free.tolist(), places.tolist(), strict=False):
        assert label == (1 if good >= 0.8 else 0 if bad >= 0.8 else None)


def test_certainty_must_be_above_one_half() -> None:
    with pytest.raises(ValueError, match=r"certainty must be above 0\.5"):
        posterior_labels(np.array([0.5, 0.5]), 0.5)


def test_ways_are_reported_only_where_they_are_possible() -> None:
    """A wrong chain's end is lost, so Monte Carlo never says of it that it has no error."""
    said = {
        (cell.outcome, cell.truth, cell.way)
        for cell in learn(sample(MIDDLE, 300, 8).evidence).cells
        if cell.witness is None
    }
    assert (Outcome.WRONG, "error", Way.EXACT) in said
    assert (Outcome.WRONG, "error", Way.NONE) not in said
    assert (Outcome.RIGHT, "error", Way.NONE) in said
