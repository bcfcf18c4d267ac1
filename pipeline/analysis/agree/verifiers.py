"""How well verifiers that have checked a run agree with human labels: of the steps that a verifier refutes, how many people
call bad (precision), and of the bad steps, how many it refutes (recall).

That a part of a step holds proves nothing of the step, so the share of bad steps among those that hold stands beside that of
all steps. Steps that people do not label, such as those after a first error, are left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pipeline.analysis.agree.human import ChainPair
from pipeline.analysis.agree.steps import cells
from pipeline.analysis.comparison import wilson
from pipeline.storage.storage import Storage
from pipeline.storage.stored_findings import CHECK_RUNS, verdict_frames
from pipeline.verifiers.base import StepVerdict

Verdicts = Mapping[tuple[str, int], str]
"""Chain and step, from 1, to verdict, for the steps that are not unknown."""
_CALLS = {StepVerdict.REFUTED.value: False, StepVerdict.HOLDS.value: True}
"""What a verdict calls a step: good or bad."""


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


def verifier_agreements(storage: Storage, pairs: Sequence[ChainPair]) -> Iterator[VerifierAgreement]:
    """One for each verifier that has checked the run, by name; of an unfinished one, on what it has checked. Raises StoreError
    for damaged findings."""
    chains = [pair.labelled.chain_id for pair in pairs]
    for name in CHECK_RUNS.names(storage):
        check = CHECK_RUNS.read(storage, name, partial=True)
        frames = verdict_frames(check, ("chain_id", "step_index", "verdict"), chains)
        verdicts = {(chain, at): verdict for frame in frames for chain, at, verdict in frame.iter_rows()}
        yield agreement(name, verdicts, pairs)


def agreement(name: str, verdicts: Verdicts, pairs: Sequence[ChainPair]) -> VerifierAgreement:
    """How well the verdicts of a verifier agree with people. Pure."""
    calls = [
        [_CALLS.get(verdicts.get((pair.labelled.chain_id, at), "")) for at, _ in enumerate(pair.human.goods, start=1)]
        for pair in pairs
    ]
    good_holds, bad_holds, bad_refuted, good_refuted = cells(pairs, calls).sum(axis=0).astype(int).tolist()
    labelled = [good for pair in pairs for good in pair.human.goods if good is not None]
    bad, precision = labelled.count(False), wilson(bad_refuted, bad_refuted + good_refuted)
    return VerifierAgreement(
        name=name,
        steps=len(labelled),
        bad=bad,
        refuted=bad_refuted + good_refuted,
        refuted_bad=bad_refuted,
        holds=good_holds + bad_holds,
        holds_bad=bad_holds,
        precision=precision.value,
        precision_low=precision.low,
        precision_high=precision.high,
        recall=bad_refuted / bad if bad else None,
    )
