"""The command `chains`: prints the labelled steps of the chains that a condition chooses."""

from pipeline.analysis.settings import ChainsConfig
from pipeline.cli.command import Command, interruptible


def _chains(config: ChainsConfig) -> int:
    import polars as pl
    from rich.console import Console

    from pipeline.analysis.chains import chosen
    from pipeline.analysis.report.terminal import print_chains
    from pipeline.core.formatting import format_count
    from pipeline.core.output import say
    from pipeline.storage.location import storage_at
    from pipeline.storage.stored_labels import label_frames

    with interruptible():
        frames = list(label_frames(storage_at(config.run_dir)))
        found = chosen(pl.concat(frames), config.limit, config.where) if frames else None
    if not found:
        say("no chain is labelled yet" if found is None else f"no chain has {config.where}")
    else:
        print_chains(Console(highlight=False), found.rows)
        if len(found) < found.total:
            say(f"{len(found)} of {format_count(found.total, 'chain')}; limit={found.total} shows all")
    return 0


CHAINS = Command(
    name="chains",
    summary="print the labelled steps of chains, such as those with a drop",
    about="chains: print chains with the value, interval and label of each step. A condition chooses which.",
    examples=(
        "chains run_dir=out",
        "chains run_dir=out where='drop > 0.5 AND NOT outcome' limit=3",
        "chains run_dir=out where=\"source_id LIKE 's01%'\"",
        "chains run_dir=out where=disagree",
    ),
    notes="""\
`where` is a condition in SQL. It may name the columns of `labels`, and drop and rise (the largest fall and rise of the
value from one step to the next, from the value before step 1 on), lowest (the lowest value of a step) and n_steps. Of labels
by consensus also disagree (a witness names another first error than Monte Carlo) and left_out (why the chain has no labels).
""",
    most_used=("run_dir", "where", "limit"),
    schema=ChainsConfig,
    run=_chains,
)
