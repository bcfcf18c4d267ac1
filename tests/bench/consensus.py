"""Labels by consensus where the truth is known: how often they are right, whether their probabilities are, and whether what is
learned of Monte Carlo and of judges is right."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pipeline.consensus.evidence import ChainEvidence
from pipeline.consensus.filters import exact
from pipeline.consensus.learning import SHARED, learn
from pipeline.consensus.posterior import p_error_free, posterior, supported
from pipeline.consensus.reliability import FEWEST_CHAINS
from pipeline.core.statistics import Floats
from tests.consensus.claimed import claimed
from tests.consensus.oracles import Cells, JudgeWorld, World, judge_cells, monte_carlo_cells, sample

CHAINS, LARGE = 1_000, 10_000
SEEDS, LARGE_SEEDS = 4, 2
CERTAINTY = 0.95
BINS = ((0.5, 0.8), (0.8, 0.95), (0.95, 1.01))
_TRUE_CELLS = 40_000
"""Chains that the true shares of Monte Carlo's ways are counted on."""

JUDGES = {
    "good": JudgeWorld(exact=0.85, early=0.05, late=0.04, alarm=0.05),
    "middle": JudgeWorld(),
    "poor": JudgeWorld(exact=0.3, early=0.2, late=0.2, alarm=0.4),
    "chance": JudgeWorld(anywhere=True, alarm=0.6),
}
POLICIES = {
    "calibrated": World(),
    "weak": World(early=0.25, late=0.05, repaired=0.1),
    "overconfident": World(sharp=3.0),
    "independent": World(independent=True),
}
CORRELATIONS = (0.0, 0.6)
KIN = {name: POLICIES[name] for name in ("calibrated", "weak")} | {
    "lucky": World(early=0.2, repaired=0.1, lucky=0.15, alarm=0.05),
    "very weak": World(early=0.35, late=0.1, repaired=0.2, alarm=0.1),
}
"""Policies whose errors a judge of their family repeats."""
SHARES = (0.5, 1.0)
GOLD, GOLD_DRAWS = (50, 100, 200), 20
OTHERS = {
    "two judges, weak policy": World(early=0.2, judges={"one": JUDGES["middle"], "two": JUDGES["poor"]}),
    "misses half of the errors of right answers": World(
        repaired=0.2, judges={"judge": JudgeWorld(missed_if_right=0.5)}
    ),
    "speaks of half of the chains": World(judges={"judge": JudgeWorld(heard=0.5)}),
    "one vote": World(judges={"judge": JudgeWorld(votes=1)}),
    "errors are early": World(skew=2.0),
    "always says none": World(judges={"judge": JudgeWorld(always=0)}),
    "always says step 1": World(judges={"judge": JudgeWorld(always=1)}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Labels:
    """Labels of all steps: `certain` (steps,), how certain each is, and `right` (steps,). NaN: no label."""

    certain: Floats
    right: NDArray[np.bool_]

    def best(self, count: int) -> float:
        """The share of right ones among the `count` most certain."""
        order = np.argsort(-np.nan_to_num(self.certain, nan=-1.0), kind="stable")[:count]
        return float(self.right[order].mean()) if len(order) else np.nan


@dataclass(slots=True, kw_only=True)
class _Found:
    within: list[bool] = field(default_factory=list)
    near: list[bool] = field(default_factory=list)
    over_exact: list[float] = field(default_factory=list)
    over_all: list[float] = field(default_factory=list)
    bins: Floats = field(default_factory=lambda: np.zeros((len(BINS), 3)))
    right_exact: list[float] = field(default_factory=list)
    right_all: list[float] = field(default_factory=list)


def consensus() -> None:
    print(
        f"\nconsensus: goals: 90 % of cells within 2 standard errors, at {LARGE:,} chains all within 0.03; labels right"
    )
    print(
        f"  at least as often as by Monte Carlo and by exact at equal share; certainty {CERTAINTY} right within 2 points"
    )
    worlds = {
        f"{policy}, {judge} judge, correlation {rho:g}": replace(
            world, judges={"judge": replace(JUDGES[judge], correlation=rho)}
        )
        for policy, world in POLICIES.items()
        for judge in JUDGES
        for rho in CORRELATIONS
    } | OTHERS
    cells: dict[int, list[bool]] = {CHAINS: [], LARGE: []}
    near: list[bool] = []
    for name, world in worlds.items():
        for chains, seeds in ((CHAINS, SEEDS), (LARGE, LARGE_SEEDS)):
            found = _measure(world, chains, seeds)
            cells[chains] += found.within
            near += found.near if chains == LARGE else []
            print(f"  {name}, {chains:,} chains: {_line(found)}", flush=True)
    for chains, within in cells.items():
        print(
            f"  all cells, {chains:,} chains: {100 * np.mean(within):.1f} % of {len(within)} within 2 standard errors"
        )
    print(f"  all cells, {LARGE:,} chains: {100 * np.mean(near):.1f} % within 0.03")
    _shared_errors()


def _shared_errors() -> None:
    """Claims where a judge repeats the policy's errors: by the limits of the family, and by those of people's labels."""
    print(
        "  a judge that repeats the policy's errors: stated > claimed (right) of each bin; ! more is claimed than is right"
    )
    for (policy, world), judge, shared in product(KIN.items(), ("good", "middle"), SHARES):
        drawn = sample(replace(world, judges={"judge": replace(JUDGES[judge], shared=shared)}), 2 * CHAINS, 0)
        places = posterior(drawn.evidence, learn(drawn.evidence))
        rows = [
            f"{each.kind} {each.stated:.2f} > {each.claimed:.2f} ({each.right:.2f}){'!' if each.too_much else ''}"
            for each in claimed(places, drawn.truth, SHARED)
        ]
        print(f"  {policy}, {judge} judge, {shared:g} of the errors: {', '.join(rows)}", flush=True)
        rng = np.random.default_rng(0)
        for count in GOLD:
            found, most = [], []
            for _ in range(GOLD_DRAWS):
                known = set(rng.choice(len(places), count, replace=False).tolist())
                truths = [true if number in known else None for number, true in enumerate(drawn.truth.tolist())]
                limits = supported(places, truths)
                most.append([row[-1] for row in limits])
                found += [each.too_much for each in claimed(places, drawn.truth, limits)]
            means = ", ".join(f"{mean:.2f}" for mean in np.mean(most, axis=0))
            print(f"    {count} chains of people: {sum(found)} of {len(found)} bins claim too much; at most {means}")


def _line(found: _Found) -> str:
    shares = "; ".join(
        f"stated {stated / count:.3f} right {right / count:.3f} ({count:,.0f})"
        for count, stated, right in found.bins.tolist()
        if count
    )
    return (
        f"cells {100 * np.mean(found.within):.0f} %; right labels: exact {np.mean(found.right_exact):.3f} "
        f"{_gain(found.over_exact)}, MC {np.mean(found.right_all):.3f} {_gain(found.over_all)}; {shares}"
    )


def _gain(gains: Sequence[float]) -> str:
    """Mean and standard error of what consensus gains, over parts of 1,000 chains."""
    known = np.array([gain for gain in gains if not np.isnan(gain)])
    if len(known) < 2:
        return "-"
    return f"{known.mean():+.3f} +- {known.std(ddof=1) / np.sqrt(len(known)):.3f}"


def _measure(world: World, chains: int, seeds: int) -> _Found:
    found = _Found()
    true = _true_cells(world)
    for seed in range(seeds):
        drawn = sample(world, chains, seed)
        learned = learn(drawn.evidence)
        for cell in learned.cells:
            if (cell.witness, str(cell.outcome)) in true and cell.chains >= FEWEST_CHAINS:
                value = true[cell.witness, str(cell.outcome)][cell.truth, str(cell.way)]
                found.within.append(abs(cell.value - value) <= 2 * cell.error)
                found.near.append(abs(cell.value - value) <= 0.03)
        places = posterior(drawn.evidence, learned)
        for begin in range(0, chains, CHAINS):
            part = slice(begin, begin + CHAINS)
            _compare(drawn.evidence[part], drawn.truth[part], places[part], found)
    return found


def _true_cells(world: World) -> dict[tuple[str | None, str], Cells]:
    """Cells of Monte Carlo only where its probabilities are calibrated: else they say how reliable these are, which nobody
    knows beforehand."""
    many = sample(replace(world, judges={}), _TRUE_CELLS, 10_000)
    found: dict[tuple[str | None, str], Cells] = {}
    for outcome, right in (("wrong", False), ("right", True)):
        if world.sharp == 1 and not world.independent:
            found[None, outcome] = monte_carlo_cells(many, right)
        for name, judge in world.judges.items():
            found[name, outcome] = judge_cells(judge, many, right)
    return found


def _compare(
    evidence: Sequence[ChainEvidence], truth: NDArray[np.int64], places: Sequence[Floats], found: _Found
) -> None:
    ours = _by_consensus(places, truth)
    alone = [_alone(chain) for chain in evidence]
    by_mc = _by_labels([labels for labels, _ in alone], [certain for _, certain in alone], truth)
    kept = [exact(labels, chain.witnesses).labels for (labels, _), chain in zip(alone, evidence, strict=True)]
    by_exact = _by_labels(kept, [certain for _, certain in alone], truth)
    for labels, gains, shares in (
        (by_exact, found.over_exact, found.right_exact),
        (by_mc, found.over_all, found.right_all),
    ):
        count = int((~np.isnan(labels.certain)).sum())
        theirs, mine = labels.best(count), ours.best(count)
        gains.append(mine - theirs)
        if not np.isnan(theirs):
            shares.append(theirs)
    for row, (low, high) in enumerate(BINS):
        inside = (ours.certain >= low) & (ours.certain < high)
        found.bins[row] += (inside.sum(), ours.certain[inside].sum(), ours.right[inside].sum())


def _by_consensus(places: Sequence[Floats], truth: NDArray[np.int64]) -> _Labels:
    certain, right = [], []
    for each, true in zip(places, truth.tolist(), strict=True):
        free, bad = p_error_free(each), each[:-1]
        steps = np.arange(len(bad))
        certain.append(np.maximum(free, bad))
        right.append(np.where(free >= bad, true > steps, true == steps))
    return _Labels(certain=np.concatenate(certain), right=np.concatenate(right))


def _alone(chain: ChainEvidence) -> tuple[tuple[int | None, ...], Floats]:
    """Labels by Monte Carlo alone, as estimator.rule=first_error makes them, and how certain it is of each."""
    nothing = (None,) * chain.steps, np.full(chain.steps, np.nan)
    if chain.monte_carlo is None or sum(chain.monte_carlo) < 0.5:
        return nothing
    said = np.array(chain.monte_carlo) / sum(chain.monte_carlo)
    if chain.outcome:
        return (1,) * chain.steps, p_error_free(said)
    lost = np.cumsum(said[:-1])
    first = int(np.argmax(lost >= 0.5)) if (lost >= 0.5).any() else chain.steps
    labels = tuple(1 if step < first else 0 if step == first else None for step in range(chain.steps))
    certain = np.where(np.arange(chain.steps) < first, 1 - lost, said[:-1])
    return labels, np.where(np.arange(chain.steps) <= first, certain, np.nan)


def _by_labels(
    labels: Sequence[tuple[int | None, ...]], certain: Sequence[Floats], truth: NDArray[np.int64]
) -> _Labels:
    sure, right = [], []
    for row, own, true in zip(labels, certain, truth.tolist(), strict=True):
        for step, label in enumerate(row):
            sure.append(np.nan if label is None else float(own[step]))
            right.append(true > step if label == 1 else true == step)
    return _Labels(certain=np.array(sure), right=np.array(right, dtype=np.bool_))
