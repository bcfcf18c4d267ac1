"""What the loop came to: figures that need the truth of arithmetic, tokens and times."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pipeline.analysis.comparison import bootstrap_means
from pipeline.analysis.select.methods import best_of
from pipeline.analysis.select.read import match_answers, read_scores
from pipeline.analysis.settings import SelectConfig
from pipeline.consensus.filters import first_error
from pipeline.core.statistics import Floats, Interval
from pipeline.train.result import auc
from tests.bench.loop.laps import ALONE, CONSENSUS, EXACT, MC, OUTCOME, STEP, TOKENS_OF
from tests.bench.loop.plan import CANDIDATES, SEED
from tests.bench.loop.problems import error_free, right
from tests.bench.loop.search_table import shown
from tests.bench.loop.stages import Done
from tests.tiny.arithmetic import Exercise

Exercises = Mapping[str, Exercise]
MINUTE = 60
LEARNED_FROM = {
    MC: "values by Monte Carlo",
    ALONE: "posterior, no witness",
    CONSENSUS: "posterior with the PRM",
    STEP: "the first lap",
}
"""Of the PRMs that choose."""


def agreement(at: Path, train: Exercises, test: Exercises) -> Iterator[str]:
    """How labels and scores of the first lap rank steps that arithmetic calls right and wrong."""
    labels = pl.read_parquet(at / "train-run" / "labels" / "*.parquet")
    prm, orm = (pl.read_parquet(at / f"{target}-scores.parquet") for target in (STEP, OUTCOME))
    for name, chains, column, known in (("labels", labels, "value", train), ("PRM", prm, "step_scores", test)):
        rows = chains.select("problem", "steps", column).iter_rows()
        pairs = [pair for problem, steps, of in rows for pair in zip(of, right(steps, known[problem]), strict=True)]
        yield f"{name} of {chains.height:,} chains: AUC {_auc(pairs)} over {len(pairs):,} steps"
    of_last = [
        _auc(list(each.select("score_last", pl.col("outcome").fill_null(False)).iter_rows())) for each in (prm, orm)
    ]
    yield f"last scores against outcomes: AUC {of_last[0]} by the PRM, {of_last[1]} by the ORM"


def transfer(at: Path, others: Exercises, test: Exercises) -> Iterator[str]:
    """What the second lap came to: labels with and without the witness, and what PRMs that learned from them choose."""
    labels = pl.read_parquet(at / "other-run" / "labels" / "*.parquet")
    exact, alone = (pl.read_parquet(at / f"{name}-labels.parquet") for name in (EXACT, ALONE))
    yield f"{labels.height:,} chains of {labels['problem_id'].n_unique():,} problems"
    for name, chains, column in (
        ("value by Monte Carlo", labels, "value"),
        ("score of the PRM", pl.read_parquet(at / "other-scores.parquet"), "step_scores"),
        ("p_error_free, no witness", alone, "p_error_free"),
        ("p_error_free with the PRM", labels, "p_error_free"),
    ):
        yield f"  {name:<26} {ranking(chains, column, others)}"
    for name, chains, column in (
        ("labels by Monte Carlo", labels, "mc_label"),
        ("exact", exact, "label"),
        ("posterior, no witness", alone, "label"),
        ("posterior with the PRM", labels, "label"),
    ):
        yield f"  {name:<26} {counted(chains, column, others)}"
    yield "PRMs on the candidates of the first lap, by what they have learned from"
    for model, name in LEARNED_FROM.items():
        steps = ranking(pl.read_parquet(at / f"{model}-scores.parquet"), "step_scores", test)
        accuracy = json.loads((at / f"{model}-select.json").read_text(encoding="utf-8"))["selections"][-1]["accuracy"]
        best, weighted, majority = (
            shown(Interval(value=each["mean"], low=each["low"], high=each["high"]))
            for each in (accuracy[method] for method in ("prm", "weighted", "majority"))
        )
        yield f"  {name:<26} {steps}; best of {CANDIDATES} {best}, weighted vote {weighted}, majority vote {majority}"
    own = _best_chances(at, CONSENSUS)
    for model in (MC, ALONE):
        gain = bootstrap_means((own - _best_chances(at, model))[:, None], SEED)[0]
        yield f"  best of {CANDIDATES}, {LEARNED_FROM[CONSENSUS]} minus {LEARNED_FROM[model]}: {shown(gain, '+')}"


def ranking(chains: pl.DataFrame, column: str, known: Exercises) -> str:
    """How figures of steps rank error-free ones above others, over all steps, and over inner ones, whose outcome does not say
    it."""
    found: list[tuple[float | None, bool, bool]] = []
    for problem, steps, figures in chains.select("problem", "steps", column).iter_rows():
        free = error_free(steps, known[problem])
        found += [
            (figure, flag, at < len(free) - 1) for at, (figure, flag) in enumerate(zip(figures, free, strict=True))
        ]
    inner = _auc([each[:2] for each in found if each[2]])
    return f"AUC {_auc([each[:2] for each in found])} over all steps, {inner} over all but the last of each chain"


def counted(chains: pl.DataFrame, column: str, known: Exercises) -> str:
    """How often labels are right. A label says whether a chain is error-free up to its step: 1 yes, 0 no, null unknown. So a 0
    after the first error is right too; whether the first error is found is counted by chain."""
    steps = located = located_right = 0
    rightly: dict[int, list[bool]] = {1: [], 0: []}
    for problem, texts, labels in chains.select("problem", "steps", column).iter_rows():
        free = error_free(texts, known[problem])
        steps += len(free)
        for label, flag in zip(labels, free, strict=True):
            if label is not None:
                rightly[label].append(flag == bool(label))
        place = first_error(labels)
        located += place is not None
        located_right += place == sum(free)
    all_labels = rightly[1] + rightly[0]
    return (
        f"{_share(len(all_labels), steps)} of steps, {_share(sum(all_labels), len(all_labels))} of them right "
        f"(1: {_share(sum(rightly[1]), len(rightly[1]))}, 0: {_share(sum(rightly[0]), len(rightly[0]))}); first error named in "
        f"{_share(located, chains.height)} of chains, {_share(located_right, located)} of them right"
    )


def costs(at: Path, done: Sequence[Done]) -> Iterator[str]:
    """Seconds and tokens, stage by stage."""
    for stage in done:
        tokens = f"  {_tokens(at / TOKENS_OF[stage.name]):>9,} tokens" if stage.name in TOKENS_OF else ""
        yield f"{stage.name:<40} {stage.seconds:6.0f} s{tokens}"
    seconds = sum(stage.seconds for stage in done)
    yield f"{'in all':<40} {seconds:6.0f} s, {seconds / MINUTE:.1f} minutes"


def _best_chances(at: Path, model: str) -> Floats:
    """P(the best-scored candidate is right) of each problem, in the order of their ids. Shape (problems,)."""
    config = SelectConfig(scores=str(at / f"{model}-scores.parquet"), run_dir=str(at / "test-run"))
    found = match_answers(read_scores(config), config).candidates.sort("problem_id", maintain_order=True)
    return np.array(
        [
            best_of(of["score"].to_list(), of["right"].to_list(), of.height)
            for _, of in found.group_by("problem_id", maintain_order=True)
        ]
    )


def _auc(pairs: Sequence[tuple[Any, Any]]) -> str:
    """Of scores and whether they belong to what is right. A step that did not fit into the model has no score."""
    known = [(score, int(flag)) for score, flag in pairs if score is not None]
    found = auc([score for score, _ in known], [flag for _, flag in known])
    return "-" if found is None else f"{found:.3f}"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def _tokens(run_dir: Path) -> int:
    """Generated for chains and for rollouts."""
    chains = pl.read_parquet(run_dir / "solutions" / "*.parquet")["token_ids"].list.len().sum()
    # A run without rollouts has no such files.
    rollouts = sorted((run_dir / "rollouts").glob("*.parquet"))
    return int(chains) + sum(int(pl.read_parquet(file)["n_tokens"].sum()) for file in rollouts)
