"""Labels from the recorded rollouts of a real policy: against people, against held-out rollouts, and what they cost.

Each labelling is a run of its own, with the real driver, estimators, checker and storage; only the engine is replaced, by the
recorded rollouts (`tests.real`). The chains are those of ProcessBench in `shared/data`; without that file nothing is printed.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

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
from pipeline.data.rows import read_rows
from pipeline.storage.location import storage_at
from pipeline.storage.stored_labels import rows_of
from pipeline.storage.stored_run import readable_run
from tests.conftest import SHARED_DATA
from tests.real.figures import (
    FIGURES,
    AgainstPeople,
    Figure,
    Floats,
    against_people,
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
PROCESSBENCH = SHARED_DATA / "processbench_dev.jsonl"
BASELINE = "fixed N=8, any"
OF_FIXED = "its rollouts relabelled by pooled"
LABELLINGS: Mapping[str, tuple[str, ...]] = {
    BASELINE: ("estimator=fixed", "estimator.rule=any"),
    "fixed N=8, threshold 0.1": ("estimator=fixed", "estimator.rule=threshold", "estimator.threshold=0.1"),
    "first_success N=8, any": ("estimator=first_success",),
    "pooled, threshold 0.1 (default)": ("estimator=pooled",),
    "pooled, first_error": ("estimator=pooled", "estimator.rule=first_error"),
    "pooled, posterior": ("estimator=pooled", "estimator.rule=posterior"),
    "pooled, relative 0.5": ("estimator=pooled", "estimator.rule=relative", "estimator.threshold=0.5"),
    "pooled, locate, threshold 0.1": ("estimator=pooled", "estimator.goal=locate"),
    OF_FIXED: ("estimator=fixed", "estimator.rule=any"),
    "pooled, locate, first_error": ("estimator=pooled", "estimator.goal=locate", "estimator.rule=first_error"),
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
_COLUMNS = ("source_id", "problem", "steps", "value", "value_sd", "label", "outcome", "origin", "prefix_ids",
            "root_prefix_id", "root_value", "root_value_sd", "rollout_tokens")  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelling:
    """`valued`: for each chain, prefix, value and its sd, without the whole chain. `tokens`: of all rollouts. `again`: rollouts
    that were drawn again."""

    chains: tuple[ModelChain, ...]
    valued: tuple[tuple[tuple[str, float, float | None], ...], ...]
    tokens: int
    steps: int
    again: int


def real() -> None:
    if not PROCESSBENCH.exists():
        print(f"real: {PROCESSBENCH} is not there")
        return
    recorded = read_recorded()
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        data = gsm8k_of(PROCESSBENCH, Path(folder) / "gsm8k.jsonl")
        people = _people(data)
        every = {
            name: _labelling(data, Path(folder) / f"a{number}", name, settings, recorded)
            for number, (name, settings) in enumerate(LABELLINGS.items())
        }
        half = min(len(each.letters) for each in recorded.values()) // 2
        parts = _splits(recorded, half)
        costs = {
            name: [
                _labelling(data, Path(folder) / f"b{number}.{at}", name, (*settings, f"sampling.rollouts={half}"), used)
                for at, (used, _) in enumerate(parts)
            ]
            for number, (name, settings) in enumerate(COSTS.items())
        }
    for line in (
        *_paths_lines(every[BASELINE], recorded),
        "",
        *_cost_lines(costs, parts, half),
        "",
        *_people_lines(every, people),
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
    rows = list(rows_of(storage, readable_run(storage, partial=False), _COLUMNS))
    return Labelling(
        chains=tuple(
            ModelChain(
                source_id=row["source_id"],
                problem=row["problem"],
                steps=tuple(row["steps"]),
                values=tuple(row["value"]),
                labels=tuple(row["label"]),
                outcome=row["outcome"],
                terminal=row["origin"][-1] == Origin.TERMINAL,
            )
            for row in rows
        ),
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
    yield (f"  {'':<34}{'tokens':>9}" + "".join(f"{name:>24}" for name in FIGURES) + f"{'labelled':>10}{'good':>7}")
    for name, each in found.items():
        figures = [estimate(partial(figure, each), count) for figure in FIGURES.values()]
        good, _, bad, _ = each.inner.sum(axis=0)
        yield (
            f"  {name:<34}{every[name].tokens:>9,}" + "".join(f"{_shown(figure, '{:.2f}'):>24}" for figure in figures)
            + f"{(good + bad) / each.judged:>10.0%}{good / (good + bad):>7.0%}"
        )  # fmt: skip
        if name != BASELINE:
            apart = [estimate(partial(_difference, figure, each, base), count) for figure in FIGURES.values()]
            yield f"  {'':<43}" + "".join(f"{_shown(figure, '{:+.2f}'):>24}" for figure in apart)


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
