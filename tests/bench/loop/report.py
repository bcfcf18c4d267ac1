"""What the loop came to: figures that need the truth, tokens and times."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from pipeline.train.result import auc
from tests.bench.loop.plan import LABELLED, SAMPLED, Files
from tests.bench.loop.stages import Done
from tests.bench.loop.transfer import LABELLED_OTHERS
from tests.bench.loop.truth import right
from tests.tiny.arithmetic import Exercise

MINUTE = 60


def agreement(files: Files, train: Mapping[str, Exercise], test: Mapping[str, Exercise]) -> list[str]:
    """How labels and scores rank steps that arithmetic calls right and wrong."""
    labels = pl.read_parquet(files.train_run / "labels" / "*.parquet")
    prm, orm = (pl.read_parquet(files.scores(target)) for target in ("step", "outcome"))
    return [
        f"labels of {labels.height:,} chains: {_of_steps(labels, 'value', train)}",
        f"PRM on {prm.height:,} held-out chains: {_of_steps(prm, 'step_scores', test)}",
        f"last scores against outcomes: AUC {_shown(_of_outcomes(prm))} by the PRM, {_shown(_of_outcomes(orm))} by the ORM",
    ]


def costs(files: Files, done: Sequence[Done]) -> list[str]:
    """Seconds and tokens, stage by stage."""
    runs = {LABELLED: files.train_run, SAMPLED: files.test_run, LABELLED_OTHERS: files.other_run}
    width = max(len(stage.name) for stage in done)
    lines = []
    for stage in done:
        tokens = f"  {_tokens(runs[stage.name]):>9,} tokens" if stage.name in runs else ""
        lines.append(f"{stage.name:<{width}} {stage.seconds:6.0f} s{tokens}")
    seconds = sum(stage.seconds for stage in done)
    return [*lines, f"{'in all':<{width}} {seconds:6.0f} s, {seconds / MINUTE:.1f} minutes"]


def _of_steps(chains: pl.DataFrame, column: str, exercises: Mapping[str, Exercise]) -> str:
    scores: list[float] = []
    flags: list[bool] = []
    for problem, steps, values in chains.select("problem", "steps", column).iter_rows():
        # A step that did not fit into the model has no score.
        known = [
            (value, is_right)
            for value, is_right in zip(values, right(steps, exercises[problem]), strict=True)
            if value is not None
        ]
        scores += [value for value, _ in known]
        flags += [is_right for _, is_right in known]
    return f"AUC {_shown(auc(scores, flags))} over {len(flags):,} steps, of which {sum(flags):,} are right"


def _of_outcomes(chains: pl.DataFrame) -> float | None:
    scored = chains.drop_nulls("score_last")
    return auc(scored["score_last"].to_list(), scored["outcome"].fill_null(False).to_list())


def _shown(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.3f}"


def _tokens(run_dir: Path) -> int:
    """Generated for chains and for rollouts."""
    chains = pl.read_parquet(run_dir / "solutions" / "*.parquet")["token_ids"].list.len().sum()
    # A run without rollouts has no such files.
    rollouts = sorted((run_dir / "rollouts").glob("*.parquet"))
    return int(chains) + sum(int(pl.read_parquet(file)["n_tokens"].sum()) for file in rollouts)
