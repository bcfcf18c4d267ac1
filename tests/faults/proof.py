"""What must hold of a run directory of which a start said that it is finished."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config import LabelConfig
from pipeline.estimate.chain import chain_values, measured_prefixes
from pipeline.estimate.counts import counts_of
from pipeline.ids import content_id, rollout_id
from pipeline.records import Fact, Finish, StepValue, Verdict
from pipeline.store.commits import UNIT, Chain, Commit, chains
from pipeline.store.standing import standing
from pipeline.store.storage import Storage
from pipeline.store.units import UnitRef, unit_rows
from tests.faults.reading import rows_of
from tests.faults.workers import Answers

Label = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That every unit is whole: `config` asks for the rollouts, `most` were ever asked for, and engines gave `answers`.

    After damage, rollouts of a drawn chain may be left that is another one now: `damaged`. `reference` holds the labels of
    given chains as a run without faults has them, by rollouts per prefix and chain.
    """

    config: LabelConfig
    most: int
    answers: Answers
    damaged: bool
    reference: Mapping[int, Mapping[str, Label]]


def faults_of(storage: Storage, units: Sequence[UnitRef], claim: Claim) -> Iterator[str]:
    """Whatever contradicts the claim."""
    there = {found.chain_id: found for found in chains(storage, UNIT)}
    for unit in units:
        found = standing(there.get(unit.unit_id) or Chain(kind=UNIT, chain_id=unit.unit_id))
        if found.whole is None or found.whole.target < claim.config.sampling.rollouts:
            yield f"success, but unit {unit.unit_id} is not whole"
            continue
        yield from _faults_of_unit(storage, unit, found.whole, claim)


def wholes(storage: Storage) -> list[Commit]:
    """The record that completes each unit that is whole."""
    return [whole for found in chains(storage, UNIT) if (whole := standing(found).whole)]


def labels_of(storage: Storage, whole: Commit) -> list[dict[str, Any]]:
    return _rows(storage, whole, "labels")


def _faults_of_unit(storage: Storage, unit: UnitRef, whole: Commit, claim: Claim) -> Iterator[str]:
    rollouts, solutions = _rows(storage, whole, "rollouts"), _rows(storage, whole, "solutions")
    labels = labels_of(storage, whole)
    yield from _wrong_answers(rollouts, solutions, claim.answers)
    asked = {prefix for label in labels for prefix in _prefixes(label)}
    ids = [row["rollout_id"] for row in rollouts]
    if len(ids) != len(set(ids)):
        yield f"a rollout stands twice in the whole unit {unit.unit_id}"
    owed = {rollout_id(prefix, issue) for prefix in asked for issue in range(whole.target)} - set(ids)
    if owed:
        yield f"success, but {len(owed)} rollouts of unit {unit.unit_id} are missing, {min(owed)} for one"
    unexpected = set(ids) - {rollout_id(prefix, issue) for prefix in asked for issue in range(claim.most)}
    if unexpected and not claim.damaged:
        yield f"nobody asked for {min(unexpected)} in unit {unit.unit_id}"
    chains = _expected_chains(storage, unit, solutions)
    if sorted(label["chain_id"] for label in labels) != sorted(chains):
        yield f"unit {unit.unit_id} should hold labels of the chains {sorted(chains)}"
    counts = counts_of(map(_fact, rollouts))
    for label in labels:
        values = chain_values(
            label["root_prefix_id"], label["prefix_ids"], label["outcome"], counts, claim.config.estimator
        )
        if _shown(label) != ([*map(_value, values.steps)], list(values.labels), _value(values.root)):
            yield f"the label of chain {label['chain_id']} does not follow from the log"
    if whole.totals.rollouts == len(rollouts) and not whole.totals.engine_failed:
        yield from _unlike(labels, claim.reference.get(whole.target, {}), len(rollouts), len(asked) * whole.target)


def _unlike(labels: list[dict[str, Any]], reference: Mapping[str, Label], rows: int, asked: int) -> Iterator[str]:
    """Labels that differ from those of the run without faults, where it sampled as much."""
    for label in labels:
        if rows == asked and label["chain_id"] in reference and label != reference[label["chain_id"]]:
            yield f"the label of chain {label['chain_id']} is not that of a run without faults"


def _wrong_answers(
    rollouts: Sequence[Mapping[str, Any]], solutions: Sequence[Mapping[str, Any]], answers: Answers
) -> Iterator[str]:
    drawn = [(rollout_id(content_id("draw", row["problem_id"]), row["draw"]), row) for row in solutions]
    for request, row in [(row["rollout_id"], row) for row in rollouts] + drawn:
        if row["finish"] == Finish.ENGINE_FAILED:
            if request not in answers.suspected:
                yield f"{request} was written off, though no engine died of it"
        elif (request, row["text"]) not in answers.given:
            yield f"{request} was never answered with what stands in the log"


def _expected_chains(storage: Storage, unit: UnitRef, solutions: Sequence[Mapping[str, Any]]) -> set[str]:
    given = {row.solution.chain_id for row in unit_rows(storage, unit) if row.solution}
    return given | {row["chain_id"] for row in solutions if row["step_ends"]}


def _fact(row: Mapping[str, Any]) -> Fact:
    return Fact(
        prefix_id=row["prefix_id"],
        finish=Finish(row["finish"]),
        n_tokens=row["n_tokens"],
        verdict=Verdict(row["verdict"]),
    )


def _prefixes(label: Label) -> set[str]:
    return {label["root_prefix_id"], *measured_prefixes(label["prefix_ids"], label["outcome"])}


def _shown(label: Label) -> tuple[list[object], list[int | None], object]:
    steps = list(zip(label["value"], label["n_correct"], label["n_rollouts"], strict=True))
    return [*steps], label["label"], (label["root_value"], label["root_n_correct"], label["root_n_rollouts"])


def _value(step: StepValue) -> tuple[float | None, int, int]:
    return step.value, step.counts.correct, step.counts.graded


def _rows(storage: Storage, whole: Commit, table: str) -> list[dict[str, Any]]:
    return [row for shard in whole.shards if shard.table == table for row in rows_of(storage, shard)]
