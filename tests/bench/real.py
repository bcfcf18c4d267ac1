"""Labels from the recorded rollouts of real policies: against people, against held-out rollouts, and what they cost.

Each labelling is a run of its own, with the real driver, estimators, checker and storage; only the engine is replaced, by the
recorded rollouts (`tests.real`). The chains, and the rollouts of the larger policy, are in `shared/data`; what is not there is
left out.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.analysis.agree.human import ChainPair, HumanChain, ModelChain, human_chains, match
from pipeline.analysis.agree.rulings import by_label
from pipeline.analysis.relabel import relabel
from pipeline.analysis.settings import Neutral
from pipeline.config.changes import RelabelConfig
from pipeline.config.choices import Layout
from pipeline.config.label import DataConfig
from pipeline.core.records import Origin
from pipeline.core.statistics import Interval
from pipeline.core.tables import LABELS
from pipeline.data.rows import read_rows
from pipeline.storage.location import storage_at
from pipeline.storage.stored_run import readable_run
from tests.conftest import SHARED_DATA
from tests.real.figures import (
    FIGURES,
    AgainstPeople,
    Figure,
    Floats,
    against_people,
    auc_of,
    estimate,
    held_out,
    total,
    value_paths,
)
from tests.real.rebuild import gsm8k_of, rebuild
from tests.real.recorded import RecordedRollouts, read_recorded
from tests.settings import EstimatorChange

Recorded = Mapping[str, RecordedRollouts]
SPLITS = 3
SEED = 0
BASELINE = "pooled, threshold 0.1 (default until the rule lasting_drop)"
OF_FIXED = "its rollouts relabelled by pooled"
EVERY_PREFIX = "fixed N=8"
LABELLINGS: Mapping[str, tuple[str, ...]] = {
    BASELINE: ("estimator=pooled", "estimator.rule=threshold"),
    "pooled (default)": ("estimator=pooled",),
    "pooled, target_sd=0.15, threshold 0.1": (
        "estimator=pooled",
        "estimator.target_sd=0.15",
        "estimator.rule=threshold",
    ),
    "pooled, target_sd=0.15": ("estimator=pooled", "estimator.target_sd=0.15"),
    "pooled, goal=locate": ("estimator=pooled", "estimator.goal=locate"),
    "pooled, first_error": ("estimator=pooled", "estimator.rule=first_error"),
    "pooled, posterior": ("estimator=pooled", "estimator.rule=posterior"),
    EVERY_PREFIX: ("estimator=fixed",),
    OF_FIXED: ("estimator=fixed",),
    "fixed N=8, any": ("estimator=fixed", "estimator.rule=any"),
    "fixed N=4": ("estimator=fixed", "sampling.rollouts=4"),
    "first_success N=8, any": ("estimator=first_success",),
}
COSTS: Mapping[str, tuple[str, ...]] = {
    "fixed": ("estimator=fixed",),
    OF_FIXED: ("estimator=fixed",),
    "first_success": ("estimator=first_success",),
    **{
        f"pooled, target_sd={target}": ("estimator=pooled", f"estimator.target_sd={target}")
        for target in (0.2, 0.15, 0.12, 0.1)
    },
}
_COLUMNS = ("source_id", "problem", "steps", "value", "value_sd", "p_no_drop", "label", "outcome", "origin", "prefix_ids",
            "root_prefix_id", "root_value", "root_value_sd", "rollout_tokens")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """`judging`: the chains with the column `p_no_drop` in place of their values. `valued`: for each chain, prefix, value and
    its sd, without the whole chain. `tokens`: of all rollouts. `again`: rollouts that were drawn again."""

    chains: tuple[ModelChain, ...]
    judging: tuple[ModelChain, ...]
    valued: tuple[tuple[tuple[str, float, float | None], ...], ...]
    tokens: int
    steps: int
    again: int


def real() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        small, large = SHARED_DATA / "processbench_dev.jsonl", SHARED_DATA / "real_1_5b"
        if small.exists():
            _figures("Qwen2.5-Coder-0.5B-Instruct", gsm8k_of(small, Path(folder) / "gsm8k.jsonl"), read_recorded())
        if large.exists():
            recorded = read_recorded(large / "rollouts.jsonl")
            _figures("Qwen2.5-Coder-1.5B-Instruct", large / "chains.jsonl", recorded)


def _figures(policy: str, data: Path, recorded: Recorded) -> None:
    people = _people(data)
    half = min(len(each.letters) for each in recorded.values()) // 2
    parts = _splits(recorded, half)
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        every = {
            name: _labelling(data, Path(folder) / f"a{number}", name, settings, recorded)
            for number, (name, settings) in enumerate(LABELLINGS.items())
        }
        costs = {
            name: [
                _labelling(data, Path(folder) / f"b{number}.{at}", name, (*settings, f"sampling.rollouts={half}"), used)
                for at, (used, _) in enumerate(parts)
            ]
            for number, (name, settings) in enumerate(COSTS.items())
        }
    for line in (
        f"{policy}:",
        *_paths_lines(every[EVERY_PREFIX], recorded),
        "",
        *_cost_lines(costs, parts, half),
        "",
        *_people_lines(every, people),
        "",
    ):
        print(line)


def _splits(recorded: Recorded, half: int) -> list[tuple[Recorded, Recorded]]:
    """Random halves of each prefix's rollouts: those to use, and those to hold out. Each half is used once."""
    random = np.random.default_rng(SEED)
    splits: list[tuple[Recorded, Recorded]] = []
    for _ in range(SPLITS):
        orders = {name: random.permutation(len(each.letters)).tolist() for name, each in recorded.items()}
        one, other = (
            {name: recorded[name].part(order[start : start + half]) for name, order in orders.items()}
            for start in (0, half)
        )
        splits += [(one, other), (other, one)]
    return splits


def _labelling(data: Path, run_dir: Path, name: str, settings: Sequence[str], recorded: Recorded) -> Labelling:
    _, again = rebuild(data, run_dir, settings, recorded=recorded)
    if name == OF_FIXED:
        relabel(RelabelConfig(run_dir=str(run_dir), estimator=EstimatorChange(name="pooled")))
    storage = storage_at(str(run_dir))
    rows = list(readable_run(storage, partial=False).rows(LABELS, _COLUMNS))
    return Labelling(
        chains=_chains(rows, "value"),
        judging=_chains(rows, "p_no_drop"),
        valued=tuple(
            tuple(
                zip(
                    (row["root_prefix_id"], *row["prefix_ids"][:-1]),
                    (row["root_value"], *row["value"][:-1]),
                    (row["root_value_sd"], *row["value_sd"][:-1]),
                    strict=True,
                )
            )
            for row in rows
        ),
        tokens=sum(row["rollout_tokens"] for row in rows),
        steps=sum(len(row["steps"]) for row in rows),
        again=again,
    )


def _chains(rows: Sequence[Mapping[str, Any]], column: str) -> tuple[ModelChain, ...]:
    return tuple(
        ModelChain(
            chain_id=row["chain_id"],
            problem_id=row["problem_id"],
            source_id=row["source_id"],
            problem=row["problem"],
            steps=tuple(row["steps"]),
            values=tuple(row[column]),
            labels=tuple(row["label"]),
            outcome=row["outcome"],
            terminal=row["origin"][-1] == Origin.TERMINAL,
        )
        for row in rows
    )


def _people(data: Path) -> list[HumanChain]:
    found = human_chains(read_rows(str(data), None), DataConfig(layout=Layout.processbench), None, Neutral.good)
    return [each for each in found if isinstance(each, HumanChain)]


def _paths_lines(labelling: Labelling, recorded: Recorded) -> Iterator[str]:
    found = value_paths([[prefix for prefix, _, _ in chain] for chain in labelling.valued], recorded)
    yield f"values of {found.prefixes:,} prefixes in {len(labelling.chains)} chains, {found.rollouts:.1f} graded rollouts each"
    yield f"  mean {found.mean:.3f}, sd {found.spread:.3f}; without any success {found.never:.0%}"
    yield f"  a value and the next one: correlation {found.correlation:.2f}, root mean square of the change {found.change:.3f}"


def _cost_lines(
    costs: Mapping[str, Sequence[Labelling]], parts: Sequence[tuple[Recorded, Recorded]], half: int
) -> Iterator[str]:
    yield (
        f"error against {half} held-out rollouts of each prefix, with at most {half} per prefix; {SPLITS} random splits, both "
        "halves in turn (95 % intervals over chains)"
    )
    yield f"  {'':<26}{'tokens per step':>16}{'RMSE':>24}{'error over claim':>26}{'drawn again':>13}"
    held_outs = [others for _, others in parts]
    for name, labellings in costs.items():
        found = total([held_out(each.valued, held) for each, held in zip(labellings, held_outs, strict=True)])
        count = len(found.prefixes)
        over = estimate(found.error_over_claim, count) if np.isfinite(found.claims).all() else None
        tokens = sum(each.tokens for each in labellings) / sum(each.steps for each in labellings)
        yield (
            f"  {name:<26}{tokens:>16,.0f}{_shown(estimate(found.rmse, count), '{:.3f}'):>24}"
            f"{'-' if over is None else _shown(over, '{:.2f}'):>26}{sum(each.again for each in labellings):>13,}"
        )


def _people_lines(every: Mapping[str, Labelling], people: Sequence[HumanChain]) -> Iterator[str]:
    found = {name: _agreement(labelling.chains, people) for name, labelling in every.items()}
    base, count = found[BASELINE], len(found[BASELINE].first_errors)
    errors = int(base.first_errors[:, 0].sum())
    yield (
        f"against people: {count} chains, {errors} with an error; {base.judged} inner steps up to it. "
        f"'good': share of the labelled ones that people call good. Below each row: the difference from {BASELINE}"
    )
    heads = (*FIGURES, "AUC of p_no_drop")
    yield (f"  {'':<62}{'tokens':>9}" + "".join(f"{name:>24}" for name in heads) + f"{'labelled':>10}{'good':>7}")
    for name, each in found.items():
        figures = [_shown(estimate(partial(figure, each), count), "{:.2f}") for figure in FIGURES.values()]
        judging = _agreement(every[name].judging, people)
        figures.append(_shown(estimate(partial(auc_of, judging), count), "{:.2f}") if judging.scores.size else "-")
        good, _, bad, _ = each.inner.sum(axis=0)
        yield (
            f"  {name:<62}{every[name].tokens:>9,}" + "".join(f"{figure:>24}" for figure in figures)
            + f"{(good + bad) / each.judged:>10.0%}{good / (good + bad):>7.0%}"
        )  # fmt: skip
        if name != BASELINE:
            apart = [estimate(partial(_difference, figure, each, base), count) for figure in FIGURES.values()]
            yield f"  {'':<71}" + "".join(f"{_shown(figure, '{:+.2f}'):>24}" for figure in apart)


def _difference(figure: Figure, found: AgainstPeople, base: AgainstPeople, weights: Floats) -> float:
    return figure(found, weights) - figure(base, weights)


def _agreement(chains: Sequence[ModelChain], people: Sequence[HumanChain]) -> AgainstPeople:
    pairs: Sequence[ChainPair] = match(people, list(chains)).pairs
    return against_people(pairs, by_label([pair.labelled for pair in pairs], "label", Neutral.good))


def _shown(figure: Interval, form: str) -> str:
    assert figure.value is not None
    assert figure.low is not None
    assert figure.high is not None
    return f"{form.format(figure.value)} ({form.format(figure.low)} to {form.format(figure.high)})"
