"""The command `score`: scores the steps of chains with a process reward model."""

from pipeline.cli.command import Command, interruptible, write_lines
from pipeline.config.score import ScoreConfig
from pipeline.core.formatting import format_count

_WHY = {
    "too_long": "not all steps fit into the model",
    "unreadable": "the model's answer names no verdict for a step",
    "failed": "the engine could not answer",
}
"""Why chains have no score, in words."""


def _score(config: ScoreConfig) -> int:
    from pipeline.runtime.scoring.files import score_to_file

    with interruptible():
        scored = score_to_file(config)
    lines = [f"scored {format_count(scored.steps, 'step')} of {format_count(scored.chains, 'chain')}: {config.out}"]
    lines += [
        f"no score, because {_WHY.get(fault, fault)}: {format_count(chains, 'chain')} (n_scored: number of scored steps)"
        for fault, chains in scored.unscored.items()
    ]
    if scored.left_out.rows:
        lines.append(f"left out: {format_count(scored.left_out.rows, 'row')}, the first: {scored.left_out.first}")
    write_lines(lines)
    return 0


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
    ),
    notes="""\
Rows need no known answer; where they have one, the column `outcome` says whether the chain is right.
""",
    most_used=(
        "scorer.model",
        "scorer",
        "out",
        "run_dir",
        "data.path",
        "data",
        "aggregation",
    ),
    schema=ScoreConfig,
    run=_score,
)
