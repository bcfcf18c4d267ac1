"""The command `select`: chooses the best of N candidates by their scores and prints the comparison of methods, or compares runs
of `search`."""

from pipeline.analysis.settings import SelectConfig
from pipeline.cli.command import Command, interruptible


def _select(config: SelectConfig) -> int:
    from rich.console import Console

    from pipeline.analysis.select.run import select

    with interruptible():
        select(config, Console(highlight=False))
    return 0


SELECT = Command(
    name="select",
    summary="choose the best of N by scores, and compare with votes and chance",
    about=(
        "select: choose the best of n candidates by their scores, and say how often it is right. For comparison: majority "
        "vote, a vote weighted by scores, an outcome reward model, chance and the best possible choice. Or compare runs of "
        "`search`."
    ),
    examples=(
        "select scores=prm.parquet best=chosen.jsonl",
        "select searches=[beam,best_of_n]",
        "select scores=prm.parquet outcome_scores=orm.parquet run_dir=heldout n=[1,4,16]",
    ),
    notes="""\
`score` makes the scores. A figure for n candidates is the mean over all ways to take n of those that a problem has (over
500 random ones for votes). run_dir names the run that sampled the candidates: a chain that was drawn several times then
counts as often.

A run of `search` has scored candidates, so scores=RUN takes it too; best=FILE then writes what the search chose. searches=RUN
or searches=[RUN,...] compares what searches chose, on the problems that all runs have. A run of independent chains, such as one
of search=best_of_n, is what the others are compared with: the best of as many chains as cost the same tokens in all.
""",
    most_used=("scores", "searches", "outcome_scores", "run_dir", "n", "out", "best"),
    schema=SelectConfig,
    run=_select,
)
