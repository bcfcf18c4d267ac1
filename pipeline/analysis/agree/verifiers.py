"""How well verifiers that have checked a run agree with human labels: of the steps that a verifier refutes, how many people
call bad (precision), and of the bad steps, how many it refutes (recall).

That a part of a step holds proves nothing of the step, so the share of bad steps among those that hold stands beside that of
all steps. Steps that people do not label, such as those after a first error, are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.agree.human import ChainPair
from pipeline.core.statistics import wilson
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS, verdict_frames
from pipeline.verifiers.base import StepVerdict

Verdicts = Mapping[tuple[str, int], str]
"""Chain and step, from 1, to verdict, for the steps that are not unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifierAgreement:
    """`steps` with a human label, of which `bad`. `refuted` and `holds` of them, and how many of these are bad. `precision` has
    the interval `precision_low` to `precision_high`; None where nothing is refuted. `recall` is None without a bad step."""

    name: str
    steps: int
    bad: int
    refuted: int
    refuted_bad: int
    holds: int
    holds_bad: int
    precision: float | None
    precision_low: float | None
    precision_high: float | None
    recall: float | None


def verifier_agreements(storage: Storage, pairs: Sequence[ChainPair], confidence: float) -> list[VerifierAgreement]:
    """One for each verifier that has checked the run, by name; of an unfinished one, on what it has checked. Raises StoreError
    for damaged findings."""
    chains = [pair.labelled.chain_id for pair in pairs]
    return [agreement(name, _verdicts(storage, name, chains), pairs, confidence) for name in CHECK_RUNS.names(storage)]


def agreement(name: str, verdicts: Verdicts, pairs: Sequence[ChainPair], confidence: float) -> VerifierAgreement:
    """How well the verdicts of a verifier agree with people. Pure."""
    steps: list[tuple[str | None, bool]] = [
        (verdicts.get((pair.labelled.chain_id, at)), good)
        for pair in pairs
        for at, good in enumerate(pair.human.goods, start=1)
        if good is not None
    ]
    refuted = [good for verdict, good in steps if verdict == StepVerdict.REFUTED]
    holds = [good for verdict, good in steps if verdict == StepVerdict.HOLDS]
    bad, found = sum(not good for _, good in steps), sum(not good for good in refuted)
    low, high = wilson(found, len(refuted), confidence) if refuted else (None, None)
    return VerifierAgreement(
        name=name,
        steps=len(steps),
        bad=bad,
        refuted=len(refuted),
        refuted_bad=found,
        holds=len(holds),
        holds_bad=sum(not good for good in holds),
        precision=found / len(refuted) if refuted else None,
        precision_low=low,
        precision_high=high,
        recall=found / bad if bad else None,
    )


def _verdicts(storage: Storage, name: str, chains: Sequence[str]) -> dict[tuple[str, int], str]:
    check = CHECK_RUNS.read(storage, name, partial=True)
    return {
        (chain, at): verdict
        for frame in verdict_frames(check, ("chain_id", "step_index", "verdict"), chains)
        for chain, at, verdict in frame.iter_rows()
    }
