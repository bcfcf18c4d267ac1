"""Which labels train the best student: small networks that see noisy features of a prefix, trained on labels of equal tokens.

A student stands for a PRM. What it sees of a prefix is a random linear map of the prefix's value, the value before, the value
of the bare problem and the position, with noise. It is judged on the inner steps of new chains, whose values are known.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from pipeline.config.choices import Interval, LabelRule
from pipeline.core.statistics import separation
from pipeline.estimators.settings import FixedConfig, PooledConfig
from pipeline.estimators.tree import Floats
from tests.bench.estimators.hard import CEILING, FIXED
from tests.synthetic.chains import Chains, chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.judged import BAD, dropped, falls, first_errors
from tests.synthetic.replayed import Replayed, replay
from tests.synthetic.rollouts import Rollouts

CHAINS, DRAWN, TEST_CHAINS = 256, 1024, 1500
STEPS = 8
SEEDS = range(4)
NOISE = 0.15
FEATURES, HIDDEN = 12, 32
EPOCHS, BATCH, RATE, DECAY = 60, 128, 3e-3, 1e-4
_CLIP = 1e-3
THRESHOLDS = np.arange(1, 20) / 20
DEFAULT_RULE = "lasting_drop (default)"
HARD_RULES: Mapping[str, Mapping[str, Any]] = {
    DEFAULT_RULE: {"rule": LabelRule.lasting_drop},
    "threshold 0.1": {"rule": LabelRule.threshold},
    "posterior, 0.8 sure": {"rule": LabelRule.posterior, "certainty": 0.8},
}
"""Settings of `pooled`; all on the same rollouts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Student:
    """Means over SEEDS. `auc_bad`, `auc_half`: area under the curve for V > 0.1 and V > 0.5; `divergence`: Kullback-Leibler, in
    nats per step; `located`: share of chains whose largest fall of scores is at the largest fall of values; `f1`: of first bad
    steps by the rule `lasting_drop` on the values, at the best of 19 thresholds of the score."""

    family: str
    labels: str
    auc_bad: float
    auc_half: float
    divergence: float
    located: float
    f1: float


def students(family_name: str) -> list[Student]:
    torch.set_num_threads(1)  # networks this small are slower with more
    family = FAMILIES[family_name](STEPS)
    test = chains_of(family, TEST_CHAINS, 999)
    seen = features(test.values, np.random.default_rng(1))
    scores: dict[str, list[tuple[float, ...]]] = {}
    for seed in SEEDS:
        chains = chains_of(family, DRAWN, 100 + seed)
        drawn = Rollouts(family, chains, seed)
        for name, targets in targets_of(chains, drawn).items():
            whole = np.concatenate([chains.values, chains.outcomes[:, None]], axis=1)[: len(targets)]
            inputs = features(whole, np.random.default_rng([seed, 2]))[:, 1:].reshape(-1, FEATURES)
            known = ~np.isnan(targets.ravel())
            network = trained(inputs[known], targets.ravel()[known], seed)
            scores.setdefault(name, []).append(judged(network, seen, test.values))
    means = {name: np.mean(each, axis=0).tolist() for name, each in scores.items()}
    return [
        Student(family=family_name, labels=name, auc_bad=bad, auc_half=half, divergence=far, located=located, f1=f1)
        for name, (bad, half, far, located, f1) in means.items()
    ]


def targets_of(chains: Chains, drawn: Rollouts) -> dict[str, Floats]:
    """Targets of the steps, the last one included, NaN without a label: as many chains as the tokens of the first CHAINS by
    default pay."""
    said = {
        name: replay(
            chains, drawn, PooledConfig(interval=Interval.posterior, threshold=BAD, **settings), rollouts=CEILING
        )
        for name, settings in HARD_RULES.items()
    }
    pooled = said[DEFAULT_RULE]
    budget = pooled.tokens[:CHAINS].sum()
    targets = {
        "pooled, value": _soft(chains, pooled.mean)[:CHAINS],
        "pooled, p_no_drop": _soft(chains, pooled.p_no_drop)[:CHAINS],
        **{f"pooled, hard, {name}": _hard(each)[:CHAINS] for name, each in said.items()},
    }
    others = {
        "pooled, target_sd=0.15": (PooledConfig(interval=Interval.posterior, target_sd=0.15, threshold=BAD), CEILING),
        **{f"fixed N={rollouts}": (FixedConfig(), rollouts) for rollouts in (4, FIXED)},
    }
    for name, (config, rollouts) in others.items():
        each = replay(chains, drawn, replace(config, rule=LabelRule.lasting_drop), rollouts=rollouts)
        paid = int(np.searchsorted(each.tokens.sum(axis=1).cumsum(), budget))
        value = each.unbiased if config.name == "fixed" else each.mean
        targets[f"{name}, value"] = _soft(chains, value)[:paid]
        targets[f"{name}, p_no_drop"] = _soft(chains, each.p_no_drop)[:paid]
        targets[f"{name}, hard"] = _hard(each)[:paid]
    return targets | {"true values": _soft(chains, chains.values)[:CHAINS]}


def _soft(chains: Chains, values: Floats) -> Floats:
    return np.concatenate([values[:, 1:], chains.outcomes[:, None]], axis=1)


def _hard(said: Replayed) -> Floats:
    return np.array([[np.nan if label is None else label for label in row] for row in said.labels], dtype=float)


def features(values: Floats, random: np.random.Generator) -> Floats:
    """(C, K) -> (C, K, FEATURES). The map is the same for all."""
    chains, steps = values.shape
    before = np.concatenate([values[:, :1], values[:, :-1]], axis=1)
    position = np.tile(np.arange(steps) / steps, (chains, 1))
    known = np.stack([values, before, np.repeat(values[:, :1], steps, axis=1), position], axis=-1)
    known[..., :3] += NOISE * random.normal(size=known[..., :3].shape)
    return np.asarray(known @ np.random.default_rng(0).normal(size=(known.shape[-1], FEATURES)))


def trained(inputs: Floats, targets: Floats, seed: int) -> torch.nn.Module:
    torch.manual_seed(seed)
    network = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, 1),
    )
    optimizer = torch.optim.Adam(network.parameters(), RATE, weight_decay=DECAY)
    x, y = torch.tensor(inputs, dtype=torch.float32), torch.tensor(targets, dtype=torch.float32)
    for _ in range(EPOCHS):
        order = torch.randperm(len(x))
        for batch in order.split(BATCH):
            loss = torch.nn.functional.binary_cross_entropy_with_logits(network(x[batch])[:, 0], y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return network


def judged(network: torch.nn.Module, seen: Floats, truth: Floats) -> tuple[float, ...]:
    with torch.no_grad():
        logits = network(torch.tensor(seen.reshape(-1, FEATURES), dtype=torch.float32))[:, 0]
        scores = torch.sigmoid(logits).numpy().astype(np.float64).reshape(truth.shape)
    rows, at = falls(truth)
    inner, scored = truth[:, 1:].ravel(), scores[:, 1:].ravel()
    value, said = np.clip(inner, _CLIP, 1 - _CLIP), np.clip(scored, _CLIP, 1 - _CLIP)
    divergence = value * np.log(value / said) + (1 - value) * np.log((1 - value) / (1 - said))
    located = (-np.diff(scores[rows], axis=1)).argmax(axis=1) == at
    bad = dropped(truth)
    f1 = max(first_errors(scores[:, 1:] <= threshold, bad) for threshold in THRESHOLDS)
    areas = (separation(scored[inner > level], scored[inner <= level]) for level in (BAD, 0.5))
    return *areas, float(divergence.mean()), float(located.mean()), f1


def students_table(found: Sequence[Student]) -> Iterator[str]:
    yield f"students trained on labels of equal tokens, K={STEPS}, means of {len(SEEDS)} seeds"
    yield f"  {'family':<12}{'labels':<38}{'AUC V>0.1':>10}{'AUC V>0.5':>10}{'divergence':>12}{'located':>9}{'F1':>6}"
    for each in found:
        yield (
            f"  {each.family:<12}{each.labels:<38}{each.auc_bad:>10.3f}{each.auc_half:>10.3f}{each.divergence:>12.3f}"
            f"{each.located:>9.0%}{each.f1:>6.2f}"
        )
