"""Labels by consensus on a finished run whose witnesses are made up, for tests of what reads such labels.

The labels are those of agreement on the first error, written out here in a few lines, so that readers are tested against the
columns alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipeline.core.ids import content_id
from pipeline.core.tables import CONSENSUS, LABELS_CONSENSUS
from pipeline.storage.commits import publish_or_refuse
from pipeline.storage.editions import LABELS, arrange, current_shards, edition_sequence, new_edition
from pipeline.storage.local import LocalStorage
from pipeline.storage.shards import read_shard, write_shard
from pipeline.storage.stored_run import finished_run
from tests.runtime.adaptive import settings, sums
from tests.runtime.in_process import label_in_process

Row = Mapping[str, Any]
Votes = Sequence[int]
"""Places that the votes of a witness name: 0 for no error, k for step k. Other places say nothing."""
Witness = Callable[[Row], Votes | None]
"""Of a row of labels, its votes; None where it says nothing."""
DIFFERS, NO_MAJORITY, NO_WITNESS = "first_error_differs", "no_majority", "no_witness"


def first_error(labels: Sequence[int | None]) -> int | None:
    """The place of the first error: 0 for none, None where a step without a label comes first."""
    for number, label in enumerate(labels, start=1):
        if label is None:
            return None
        if label == 0:
            return number
    return 0


def majority(votes: Votes, steps: int) -> int | None:
    counts = [votes.count(place) for place in range(steps + 1)]
    most = max(counts)
    return counts.index(most) if most and counts.count(most) == 1 else None


def opinion(name: str, votes: Votes, steps: int) -> dict[str, Any]:
    shares = [votes.count(place) / len(votes) for place in range(steps + 1)]
    return {"witness": name, "first_error": shares[1:], "no_error": shares[0], "steps": None}


def same_as_monte_carlo(row: Row) -> Votes:
    """Four votes for what Monte Carlo says, or for no error where it is not known."""
    return [first_error(row["label"]) or 0] * 4


def consensus_row(row: Row, witnesses: Mapping[str, Witness], *, soft: bool = False) -> dict[str, Any]:
    """The columns of a chain. `soft`: with the probability that no error is before the end of a step."""
    steps, place = len(row["label"]), first_error(row["label"])
    said = {name: votes for name, witness in witnesses.items() if (votes := witness(row)) is not None}
    named = {majority(votes, steps) for votes in said.values()}
    reason = None
    if not said:
        reason = NO_WITNESS
    elif None in named:
        reason = NO_MAJORITY
    elif named != {place}:
        reason = DIFFERS
    free = [1.0 - number / (steps + 1) for number in range(1, steps + 1)]
    return {
        "label": row["label"] if reason is None else [None] * steps,
        "mc_label": row["label"],
        "p_error_free": free if soft else None,
        "left_out": reason,
        "opinions": [opinion(name, votes, steps) for name, votes in said.items()],
    }


def with_consensus(labels: pa.Table, witnesses: Mapping[str, Witness], *, soft: bool, rule: str) -> pa.Table:
    rows = [{**row, **consensus_row(row, witnesses, soft=soft), "label_rule": rule} for row in labels.to_pylist()]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([*labels.schema, *map(LABELS_CONSENSUS.schema.field, CONSENSUS)])
    )


JUDGE, SCORES = "judge:qwen", "scores:prm.parquet"
ABOUT = "Qwen2.5-7B gave 4 votes on each of 24 chains, and was shown the known answers"
PROBLEMS = 12


def errs_on_even(row: Row) -> Votes | None:
    """The same first error as Monte Carlo for odd problems, step 1 for even ones; nothing for multiples of 5."""
    number = int(row["source_id"].split("-")[1])
    if number % 5 == 0:
        return None
    return [1, 1, 1, -1] if number % 2 == 0 else same_as_monte_carlo(row)


def consensus_run(folder: Path, *, soft: bool = False, made_up: Mapping[str, str] | None = None) -> Path:
    """The directory of a run with such labels: problems with a right and a wrong chain each, `sum-3-0` and so on, and two
    witnesses, one of which says nothing of some chains."""
    rows = [{**row, "id": f"sum-{row['id']}"} for row in sums(PROBLEMS)]
    label_in_process(settings(folder, rows, "estimator.rule=threshold", "run.unit_problems=5"))
    run_dir = folder / "run"
    witnesses = {JUDGE: errs_on_even, SCORES: same_as_monte_carlo}
    consensus_edition(run_dir, witnesses, soft=soft, facts={JUDGE: ABOUT}, made_up=made_up)
    return run_dir


def consensus_edition(
    run_dir: Path,
    witnesses: Mapping[str, Witness],
    *,
    soft: bool = False,
    facts: Mapping[str, str] | None = None,
    made_up: Mapping[str, str] | None = None,
) -> None:
    """Make an edition with labels by agreement of these witnesses the current one of a finished run. `facts`: by witness, what
    it is. `made_up`: by witness, why it is no evidence."""
    storage = LocalStorage(run_dir)
    run = finished_run(storage)
    how = "posterior" if soft else "exact"
    rule = f"consensus:{how}({','.join(witnesses)})"
    shards = [
        write_shard(
            storage,
            LABELS,
            content_id(LABELS, unit_id),
            [with_consensus(read_shard(storage, shard), witnesses, soft=soft, rule=rule)],
        )
        for unit_id, found in current_shards(run.wholes, run.edition).items()
        for shard in found
    ]
    settings = {
        **run.settings,
        "estimator.rule": "consensus",
        "consensus.how": how,
        "consensus.mc_rule": run.settings["estimator.rule"],
        "consensus.witnesses": list(witnesses),
        **{f"consensus.witness.{name}": (facts or {}).get(name, "made up for a test") for name in witnesses},
        **{f"consensus.made_up.{name}": why for name, why in (made_up or {}).items()},
    }
    edition = new_edition(run.editions, run.wholes, settings, shards)
    publish_or_refuse(storage, edition)
    arrange(storage, replace(run, editions=edition_sequence(storage)).current_files)
