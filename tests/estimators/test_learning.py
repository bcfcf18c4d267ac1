"""Learning from a unit's chains how values change, and kernels that are stored."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.records import ChainShape, Trials
from pipeline.core.table import TABLES
from pipeline.estimators.pooled import kernel, learning
from pipeline.estimators.pooled.grid import GRID, POINTS
from pipeline.estimators.pooled.kernel import (
    PRIOR,
    PRIOR_VERSION,
    Kernel,
    TransitionModel,
    correlation,
    transition_model,
)
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.estimators.pooled.reproduction import ANGLES, KINDS
from pipeline.estimators.tree import Tree, tree_of
from tests.estimators.pooled import JUMPS, seen, straight

LEARNER = KernelLearner()
Unit = tuple[list[ChainShape], dict[str, Trials]]


@st.composite
def units(draw: st.DrawFn) -> Unit:
    chains, have = [], {}
    for name in range(draw(st.integers(1, 6))):
        shape = straight(f"{name} ", draw(st.integers(1, 6)), draw(st.sampled_from([True, False, None])))
        chains.append(shape)
        for prefix in shape.prefix_ids:
            graded = draw(st.integers(0, 8))
            have[prefix] = seen(draw(st.integers(0, graded)), graded)
    return chains, have


def trees(chains: Sequence[ChainShape]) -> list[Tree]:
    return [tree_of([shape]) for shape in chains]


def log_likelihood(chains: Sequence[ChainShape], have: Mapping[str, Trials], moving: TransitionModel) -> float:
    """The log likelihood of chains without branches, by the forward algorithm."""
    shown = 0.0
    for shape in chains:
        now = moving.start
        measured = shape.prefix_ids if shape.outcome is None else shape.prefix_ids[:-1]
        for place, prefix in enumerate(measured):
            counts = have[prefix].counts
            before = now @ moving.step if place else now
            now = before * GRID**counts.correct * (1 - GRID) ** (counts.graded - counts.correct)
        if shape.outcome is not None:
            now = now * (moving.right if shape.outcome else 1 - moving.right)
        shown += float(np.log(now.sum()))
    return shown


def log_prior(moving: TransitionModel, before: TransitionModel) -> float:
    """Dirichlet and Beta densities whose modes are `before`, with the weights that the prior has."""
    ends = before.right * np.log(moving.right) + (1 - before.right) * np.log(1 - moving.right)
    return float(
        kernel._START_WEIGHT * before.start @ np.log(moving.start)
        + kernel._STEP_WEIGHT * kernel._mixture(PRIOR.steps).ravel() @ np.log(moving.step).ravel()
        + kernel._LAST_WEIGHT * ends.sum()
    )


@given(units())
def test_each_round_explains_the_unit_better_in_the_light_of_the_prior(unit: Unit) -> None:
    """Expectation maximization guarantees this for a constant prior. In the pipeline the prior is fitted as well."""
    chains, have = unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_mixture", lambda steps, mixture=kernel._mixture: mixture(np.zeros_like(steps)))
        before = transition_model(PRIOR)
        shown = [log_likelihood(chains, have, before) + log_prior(before, before)]
        for rounds in (1, 2, 3, 6):
            patch.setattr(learning, "_ITERATIONS", rounds)
            moving = transition_model(LEARNER.learn(PRIOR, trees(chains), have))
            shown.append(log_likelihood(chains, have, moving) + log_prior(moving, before))
    assert np.diff(shown).min() >= -1e-9


@given(units())
def test_what_is_learned_explains_the_unit_better_than_the_prior(unit: Unit) -> None:
    chains, have = unit
    known = LEARNER.learn(PRIOR, trees(chains), have)
    assert known.chains == len(chains)
    assert (
        log_likelihood(chains, have, transition_model(known))
        >= log_likelihood(chains, have, transition_model(PRIOR)) - 1e-9
    )


@settings(max_examples=15)
@given(units(), st.sampled_from([PRIOR, JUMPS]))
def test_probabilities_are_positive_and_add_up_and_the_order_of_chains_does_not_matter(
    unit: Unit, known: Kernel
) -> None:
    chains, have = unit
    kernels = [LEARNER.learn(known, trees(together), have) for together in (chains, chains, chains[::-1])]
    first, again, reversed_ = (transition_model(each) for each in kernels)
    for part in ("start", "step", "right"):
        np.testing.assert_array_equal(getattr(first, part), getattr(again, part))
        np.testing.assert_allclose(getattr(first, part), getattr(reversed_, part), rtol=1e-9)
        assert getattr(first, part).min() > 0
    assert first.right.max() < 1
    np.testing.assert_allclose([first.start.sum(), *first.step.sum(axis=1)], 1)
    assert -1 <= correlation(kernels[0]) <= 1
    measured = sum(len(shape.prefix_ids) - (shape.outcome is not None) for shape in chains)
    assert kernels[0].steps.sum() - known.steps.sum() == pytest.approx(measured - len(chains))
    assert kernels[0].start.sum() - known.start.sum() == pytest.approx(len(chains))


def test_nothing_to_learn_from() -> None:
    assert LEARNER.learn(JUMPS, [], {}) is JUMPS


def units_of(moves: str, number: int, random: np.random.Generator) -> list[Unit]:
    """Units of 100 chains of 8 steps with 8 rollouts each; values are constant, independent, or jump at every fifth step."""
    made = []
    for _ in range(number):
        value = random.random((100, 8))
        for step in range(1, 8):
            kept = {"constant": 1.0, "jumps": 0.8, "independent": 0.0}[moves]
            value[:, step] = np.where(random.random(100) < kept, value[:, step - 1], value[:, step])
        right = random.binomial(8, value)
        chains = [straight(f"{name} ", 8, bool(random.random() < value[name, -1])) for name in range(100)]
        have = {f"{name} {step}": seen(int(right[name, step]), 8) for name in range(100) for step in range(8)}
        made.append((chains, have))
    return made


@pytest.mark.parametrize(
    ("moves", "least", "most"), [("constant", 0.95, 1.0), ("jumps", 0.7, 0.9), ("independent", -0.1, 0.1)]
)
def test_a_kernel_reports_how_much_steps_say_of_each_other(moves: str, least: float, most: float) -> None:
    known = PRIOR
    for chains, have in units_of(moves, 4, np.random.default_rng(1)):
        known = LEARNER.learn(known, trees(chains), have)
    assert least <= correlation(known) <= most


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**40))
def test_a_kernel_comes_back_as_it_went_in(seed: int, chains: int) -> None:
    rng = np.random.default_rng(seed)
    kernel = Kernel(
        start=rng.exponential(size=POINTS),
        steps=rng.exponential(size=(POINTS, POINTS)),
        last=rng.exponential(size=(2, POINTS)),
        reproduced=rng.exponential(size=(KINDS, ANGLES)),
        chains=chains,
    )
    table = LEARNER.to_table(kernel)
    assert table.schema.equals(TABLES[LEARNER.table].schema)
    back = LEARNER.from_table(table)
    assert back.chains == chains
    for name in ("start", "steps", "last"):
        assert np.array_equal(getattr(back, name), getattr(kernel, name))


@pytest.mark.parametrize(
    "change", [{"prior": PRIOR_VERSION + 1}, {"start": [0.5]}, {"steps": [[1.0]]}, {"last": [[0.0]]}]
)
def test_a_kernel_of_another_version_is_refused(change: dict[str, object]) -> None:
    row = LEARNER.to_table(PRIOR).to_pylist()[0] | change
    with pytest.raises(ValueError, match="another version"):
        LEARNER.from_table(pa.Table.from_pylist([row], schema=TABLES[LEARNER.table].schema))
