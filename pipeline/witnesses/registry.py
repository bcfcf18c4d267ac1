"""The witnesses by kind: built-in ones and those of installed plug-ins. To add a built-in one, add a line to `WITNESSES`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipeline.core.errors import UsageError
from pipeline.core.ids import content_id
from pipeline.core.registry import Registry
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import JUDGE_RUNS
from pipeline.storage.stored_findings import CHECK_RUNS
from pipeline.witnesses.base import WitnessSource

if TYPE_CHECKING:
    from pipeline.witnesses.base import Witness

WITNESSES: "Registry[type[Witness]]" = Registry(
    "witnesses",
    noun="witness",
    setting="consensus.witnesses",
    ours={
        "checks": "pipeline.witnesses.checks:ChecksWitness",
        "judge": "pipeline.witnesses.judge:JudgeWitness",
        "scores": "pipeline.witnesses.scores:ScoresWitness",
    },
    needs=("about", "digest", "claim"),
    answers="pipeline.witnesses.base:ANSWERS",
)


def witnesses_of(run_dir: str, names: Sequence[str]) -> list["Witness"]:
    """The witnesses of these names, in their order, for the chains of a run. Raises UsageError for a kind that is not
    installed."""
    return [_witness(run_dir, name) for name in names]


def witness_names_of(run_dir: str) -> list[str]:
    """The names of all witnesses that a run directory holds: its judges, then the verifiers that have checked it. Raises
    StoreError for a directory that cannot be read."""
    storage = storage_at(run_dir)
    return [
        *(f"judge:{name}" for name in JUDGE_RUNS.names(storage)),
        *(f"checks:{name}" for name in CHECK_RUNS.names(storage)),
    ]


def about(witness: "Witness") -> str:
    """What a witness is, in a line, with the plug-in that it comes from. Raises as `Witness.about` does."""
    plugin = WITNESSES.plugin(witness.source.kind)
    return witness.about() if plugin is None else f"{witness.about()}, by {plugin}"


def digest(witness: "Witness") -> str:
    """A hash of everything that a witness says, and of the version of its plug-in. Raises as `Witness.digest` does."""
    plugin = WITNESSES.plugin(witness.source.kind)
    return content_id("witness", witness.source.name, witness.digest(), "" if plugin is None else str(plugin))


def _witness(run_dir: str, name: str) -> "Witness":
    kind, _, source = name.partition(":")
    if kind not in WITNESSES.names():
        whole = next((each for each in witness_names_of(run_dir) if each.partition(":")[2] == name), None)
        if whole is not None:
            raise UsageError(
                f"consensus.witnesses={name}: a witness is named with its kind: consensus.witnesses=[{whole}]"
            )
    made: Witness = WITNESSES.create(kind, WitnessSource(run_dir=run_dir, kind=kind, source=source))
    return made
