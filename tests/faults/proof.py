"""What must hold of a run directory of which a start said that it is finished."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.config.label import LabelConfig
from pipeline.core.ids import content_id, rollout_id
from pipeline.core.records import ChainShape, ChainValues, Finish, RolloutOutcome, StepValue, Verdict
from pipeline.estimators.labelling import chain_values
from pipeline.estimators.pooled.kernel import PRIOR
from pipeline.estimators.pooled.learning import KernelLearner
from pipeline.estimators.registry import estimator_for
from pipeline.estimators.tree import measured_prefixes, trials_of
from pipeline.runtime.problem_budget import meets_target, unit_target_of
from pipeline.storage.commits import UNIT, Commit, RecordSequence, record_sequences, resolve
from pipeline.storage.shards import read_shard
from pipeline.storage.storage import Storage
from pipeline.storage.units import UnitRef, unit_rows
from tests.faults.reading import rows_of
from tests.faults.workers import Answers
from tests.settings import deciding

Label = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a run without faults has: labels by `key_of`, and how many rollouts by unit id."""

    labels: Mapping[tuple[str, str], Label]
    rollouts: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """That every unit is whole: `config` asks for the rollouts, `most` were ever asked for, and engines gave `answers`.

    After damage, rollouts of a drawn chain may be left that is another one now: `damaged`. `references` are runs without
    faults, by rollouts per prefix.
    """

    config: LabelConfig
    most: int
    answers: Answers
    damaged: bool
    references: Mapping[int, Reference]


def faults_of(storage: Storage, units: Sequence[UnitRef], claim: Claim) -> Iterator[str]:
    """Whatever contradicts the claim."""
    there = {found.sequence_id: found for found in record_sequences(storage, UNIT)}
    for unit in units:
        found = resolve(there.get(unit.unit_id) or RecordSequence(kind=UNIT, sequence_id=unit.unit_id))
        if found.whole is None or not meets_target(found.whole, unit_target_of(*deciding(claim.config))):
            yield f"success, but unit {unit.unit_id} is not whole"
            continue
        yield from _faults_of_unit(storage, unit, found.whole, claim)


def wholes(storage: Storage) -> list[Commit]:
    """The record that completes each unit that is whole."""
    return [whole for found in record_sequences(storage, UNIT) if (whole := resolve(found).whole)]


def key_of(label: Label) -> tuple[str, str]:
    """A chain with its bare problem, which further units of a problem measure again."""
    return label["root_prefix_id"], label["chain_id"]


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
    outcomes = [_outcome(row) for row in rollouts]
    owed = _planned(asked, outcomes, whole, claim) - set(ids)
    if owed:
        yield f"success, but {len(owed)} rollouts of unit {unit.unit_id} are missing, {min(owed)} for one"
    unexpected = [
        outcome for outcome in outcomes if outcome.prefix_id not in asked or outcome.issue_index >= _most(claim)
    ]
    if unexpected and not claim.damaged:
        yield f"nobody asked for {min(map(_id, unexpected))} in unit {unit.unit_id}"
    chains = _expected_chains(storage, unit, solutions)
    if sorted(label["chain_id"] for label in labels) != sorted(chains):
        yield f"unit {unit.unit_id} should hold labels of the chains {sorted(chains)}"
    shapes = [_shape(label) for label in labels]
    for label, values in zip(labels, _values(storage, whole, shapes, outcomes, claim), strict=True):
        if _shown(label) != ([*map(_value, values.steps)], list(values.labels), _value(values.root)):
            yield f"the label of chain {label['chain_id']} does not follow from the log"
    reference = claim.references.get(whole.unit_target.rollouts)
    if reference and not whole.totals.engine_failed:
        yield from _unlike(unit, labels, len(rollouts), reference, claim)


def _unlike(unit: UnitRef, labels: Sequence[Label], rollouts: int, reference: Reference, claim: Claim) -> Iterator[str]:
    """What differs from the run without faults: labels, where it sampled as much; what an estimator that learns from other
    units asks for depends on who was first."""
    chosen = claim.config.estimator.name in ("first_success", "bisect")
    given = all(key_of(label) in reference.labels for label in labels)
    one_plan = len(claim.references) == 1
    if chosen and given and one_plan and not claim.damaged and rollouts != reference.rollouts[unit.unit_id]:
        yield f"unit {unit.unit_id} has {rollouts} rollouts, without faults {reference.rollouts[unit.unit_id]}"
    same = rollouts == reference.rollouts[unit.unit_id] and claim.config.estimator.name != "pooled"
    for label in labels if same else ():
        if label != reference.labels.get(key_of(label), label):
            yield f"the label of chain {label['chain_id']} is not that of a run without faults"


def _planned(asked: Collection[str], outcomes: Sequence[RolloutOutcome], whole: Commit, claim: Claim) -> set[str]:
    """Ids of the rollouts that must be there, inferred from those that are."""
    if claim.config.estimator.name == "fixed":
        return {rollout_id(prefix, issue) for prefix in asked for issue in range(whole.unit_target.rollouts)}
    upto = {outcome.prefix_id: 0 for outcome in outcomes}
    for outcome in outcomes:
        upto[outcome.prefix_id] = max(upto[outcome.prefix_id], outcome.issue_index + 1)
    return {rollout_id(prefix, issue) for prefix, until in upto.items() for issue in range(until)}


def _most(claim: Claim) -> int:
    """How many rollouts a prefix has at most."""
    return 10**9 if claim.config.estimator.name == "pooled" else claim.most


def _id(outcome: RolloutOutcome) -> str:
    return rollout_id(outcome.prefix_id, outcome.issue_index)


def _values(
    storage: Storage, whole: Commit, chains: Sequence[ChainShape], outcomes: Sequence[RolloutOutcome], claim: Claim
) -> list[ChainValues]:
    kernels = [
        KernelLearner().from_table(read_shard(storage, shard))
        for shard in whole.shards
        if shard.table == KernelLearner.table
    ]
    return chain_values(
        chains, trials_of(outcomes), estimator_for(claim.config.estimator), kernels[0] if kernels else PRIOR
    )


def _shape(label: Label) -> ChainShape:
    return ChainShape(prefix_ids=(label["root_prefix_id"], *label["prefix_ids"]), outcome=label["outcome"])


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


def _outcome(row: Mapping[str, Any]) -> RolloutOutcome:
    return RolloutOutcome(
        prefix_id=row["prefix_id"],
        issue_index=row["issue_index"],
        round=row["round"],
        reached_prefix_id=row["reached_prefix_id"],
        finish=Finish(row["finish"]),
        n_tokens=row["n_tokens"],
        verdict=Verdict(row["verdict"]),
    )


def _prefixes(label: Label) -> set[str]:
    return set(measured_prefixes(_shape(label)))


def _shown(label: Label) -> tuple[list[object], list[int | None], object]:
    steps = list(zip(label["value"], label["n_correct"], label["n_rollouts"], strict=True))
    return [*steps], label["label"], (label["root_value"], label["root_n_correct"], label["root_n_rollouts"])


def _value(step: StepValue) -> tuple[float | None, int, int]:
    return step.value, step.counts.correct, step.counts.graded


def _rows(storage: Storage, whole: Commit, table: str) -> list[dict[str, Any]]:
    return [row for shard in whole.shards if shard.table == table for row in rows_of(storage, shard)]
