"""The command `score`: scores the steps of chains with a process reward model."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.cli.workers import NOTHING_FOUND, Work, cost_lines, ending_lines, head_line
from pipeline.config.score import ScoreConfig
from pipeline.core.formatting import WHY_UNSCORED, format_count, format_percent

if TYPE_CHECKING:
    from pipeline.core.progress import Summary
    from pipeline.runtime.chain_run.estimate import Estimate


def _score(config: ScoreConfig) -> int:
    from pipeline.runtime.scoring.files import is_file

    return _to_file(config) if is_file(config.out) and not config.estimate else SCORING(config)


def _estimated(_: ScoreConfig, plan: "Estimate") -> Iterator[str]:
    from pipeline.runtime.chain_run.chain_task import values

    tokens, faults = (values(plan.tables["scores"], name) for name in ("n_tokens", "fault"))
    yield head_line(plan, "score")
    yield (
        f"tokens    {sum(tokens) / plan.sampled:,.0f} a chain on average, {max(tokens):,} at most, in a sample of "
        f"{plan.sampled:,}"
    )
    yield from cost_lines(plan)
    for fault, chains in Counter(filter(None, faults)).items():
        yield f"no score  {format_percent(chains / plan.sampled)} of the sample, because {WHY_UNSCORED.get(fault, fault)}"


def _to_file(config: ScoreConfig) -> int:
    from pipeline.runtime.scoring.files import score_to_file

    with interruptible():
        scored = score_to_file(config)
    lines = [_scored(scored.steps, scored.chains, config.out), *_calibrated(config), *_unscored(scored.unscored)]
    if scored.left_out.rows:
        lines.append(f"left out: {format_count(scored.left_out.rows, 'row')}, the first: {scored.left_out.first}")
    write_lines(lines)
    return 0 if scored.steps else NOTHING_FOUND


def _ended(config: ScoreConfig, found: "Summary") -> bool:
    tally, chains = found.tally, found.added["chains"]
    lines = [_scored(tally["steps"], tally["chains"], f"{found.run_dir}/scores"), *_calibrated(config)]
    lines += _unscored(
        {"too_long": tally["too_long"], "unreadable": tally["unreadable"], "failed": tally["engine_failed"]}
    )
    lines += ending_lines(found, format_count(chains, "chain"), (chains, "{:,.1f} chains/s"))
    write_lines(lines)
    return tally["steps"] > 0


def _calibrated(config: ScoreConfig) -> list[str]:
    if config.calibration is None:
        return []
    from pipeline.scorers.calibration_file import read_calibration

    made_from = read_calibration(config.calibration).made_from
    policy, other = made_from.policy, f" (made for scores of {made_from.model})" if config.other_model else ""
    return [
        f"calibrated by {config.calibration}{other}: scores are V, P(correct final answer), under the policy {policy}; the "
        "model's own are in raw_step_scores"
    ]


def _scored(steps: int, chains: int, where: str) -> str:
    return f"scored {format_count(steps, 'step')} of {format_count(chains, 'chain')}: {where}"


def _unscored(by_reason: Mapping[str, int]) -> list[str]:
    return [
        f"no score, because {WHY_UNSCORED.get(fault, fault)}: {format_count(chains, 'chain')} (n_scored: number of scored "
        "steps)"
        for fault, chains in by_reason.items()
        if chains
    ]


SCORING: Work[ScoreConfig, "Summary"] = Work(
    run="pipeline.runtime.scoring.task:ScoreTask", ended=_ended, estimated=_estimated
)
SCORE = Command(
    name="score",
    summary="score the steps of chains with a process reward model",
    about=(
        "score: write a score of every step, and of every chain by its last, worst or mean step or their product, as "
        "Parquet or JSONL."
    ),
    examples=(
        "score model=prm run_dir=out out=scores.parquet",
        "score model=prm data=processbench data.path=cases.jsonl out=scores.jsonl",
        "score scorer=own model=prm run_dir=out out=scored --estimate",
        "score model=prm run_dir=out out=scored cluster.workers=2",
        "score model=prm run_dir=out out=scores.parquet calibration=cal.json",
    ),
    notes="""\
Rows need no known answer; where they have one, the column `outcome` says whether the chain is right. A file is written by this
process, as a whole. A folder is written by Ray workers, on all GPUs; the same command goes on there, and scores what is new.

--estimate counts the chains, scores a sample of them, says how long all would take, and writes nothing.

calibration=FILE, as `calibrate` writes it, makes step scores probabilities that the policy ends the chain right. Scores of
whole chains follow from them. The model's own step scores are then in the column `raw_step_scores`.
""",
    most_used=("scorer.model", "scorer", "out", "run_dir", "data.path", "data", "aggregation"),
    schema=ScoreConfig,
    flags=("estimate",),
    short={"model": "scorer.model"},
    run=_score,
    work=SCORING,
)
