"""What a consensus may claim at most: where a judge repeats the policy's errors, and where people have labelled some chains."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import beta

from pipeline.consensus.learning import SHARED, UNLIMITED, learn
from pipeline.consensus.posterior import claims, posterior, supported
from pipeline.core.statistics import Floats
from pipeline.witnesses.base import family
from tests.consensus.claimed import claimed
from tests.consensus.oracles import JudgeWorld, Sample, World, sample

pytestmark = pytest.mark.slow

CHAINS, GOLD = 1_000, 100
STEPS = (2, 5, 8)


@cache
def studied(shared: float) -> tuple[Sample, list[Floats]]:
    """Chains of a policy that misses the place of a third of its first errors, and of a judge that repeats a share of them."""
    judges = {"judge": JudgeWorld(shared=shared)}
    found = sample(World(steps=STEPS, early=0.25, late=0.05, repaired=0.1, judges=judges), CHAINS, 1)
    return found, posterior(found.evidence, learn(found.evidence))


@pytest.mark.parametrize("shared", [0.5, 1.0])
def test_what_is_claimed_is_right_where_a_judge_repeats_errors_and_what_is_stated_is_not(shared: float) -> None:
    found, places = studied(shared)
    assert any(each.too_much for each in claimed(places, found.truth, UNLIMITED))
    assert not [each for each in claimed(places, found.truth, SHARED) if each.too_much]


def test_labels_of_people_limit_what_is_claimed_to_what_is_right() -> None:
    found, places = studied(1.0)
    known = set(np.random.default_rng(0).choice(CHAINS, GOLD, replace=False).tolist())
    limits = supported(places, [true if at in known else None for at, true in enumerate(found.truth.tolist())])
    assert not [each for each in claimed(places, found.truth, limits) if each.too_much]
    assert limits[0][-1] > 0.75  # it does not refuse all


@given(st.lists(st.tuples(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), st.integers(0, 4)), max_size=8))
def test_a_few_chains_support_no_more_than_that_many_right_ones(chains: Sequence[tuple[list[float], int]]) -> None:
    places = [np.array(weights) / sum(weights) for weights, _ in chains]
    limits = supported(places, [min(true, len(each) - 1) for each, (_, true) in zip(places, chains, strict=True)])
    most = float(beta.ppf(0.025, len(chains), 1)) if chains else 0.0
    for row in limits:
        assert list(row) == sorted(row)
        assert max(row) <= most + 1e-12
    for each in places:
        free = claims(each, limits)[0]
        assert ((free <= max(0.5, most)) & (free >= 1 - max(0.5, most))).all()
        assert (np.diff(free) <= 1e-12).all()


@pytest.mark.parametrize(
    ("policy", "judge", "kin"),
    [
        ({"policy.model": "Qwen/Qwen2.5-0.5B-Instruct"}, {"policy.model": "Qwen/Qwen2.5-Math-7B-Instruct"}, True),
        ({"policy.model": "/a/qwen/llama-3-8b"}, {"policy.model": "Qwen/Qwen3-8B"}, False),
        ({"policy.model": "Qwen/Qwen3-8B"}, {"policy.model": "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B"}, True),
        ({"policy.model": "meta-llama/Llama-3-8B-Instruct"}, {"policy.model": "google/gemma-3-4b-instruct"}, False),
        ({"policy.model": "x", "policy_fingerprint": "ab1"}, {"policy.model": "y", "policy_fingerprint": "ab1"}, True),
        ({"policy.model": "x", "policy_fingerprint": ""}, {"policy.model": "y", "policy_fingerprint": ""}, False),
        ({"policy.kind": "embedded"}, {"policy.kind": "embedded"}, True),
        ({"policy.kind": "embedded"}, {}, False),
    ],
)
def test_models_are_of_one_family_by_their_weights_or_by_a_word_of_their_names(
    policy: dict[str, object], judge: dict[str, object], kin: bool
) -> None:
    assert bool(family(policy) & family(judge)) is kin
