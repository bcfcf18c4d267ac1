"""What an export came to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.export.example import NO_LABELS, LabelCounts, known_as


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A chain that was left out, or that the trainer would misread: a word to count by, and a sentence. `fatal`: it cannot be
    written at all."""

    chain_id: str
    source_id: str | None
    kind: str
    detail: str
    fatal: bool = False

    @property
    def told(self) -> str:
        """Which chain it is, and what is the matter with it."""
        return f"chain {known_as(self.chain_id, self.source_id)}: {self.detail}"


@dataclass(kw_only=True, slots=True)
class FileCounts:
    """What one file holds, counted up while it is written: labels by the run's rule or the threshold that was asked for."""

    rows: int = 0
    problems: set[str] = field(default_factory=set)
    labels: LabelCounts = NO_LABELS


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """How many chains one reason holds for, and the first of them."""

    count: int
    first: Left


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """`files` by their names; why chains, of all that were read, are in none of them (`left_out`), and what the trainer will
    misread all the same (`kept`). `owed` units had no labels yet."""

    out: str
    chains: int
    steps: int
    files: Mapping[str, FileCounts]
    left_out: Mapping[str, Reason]
    kept: Mapping[str, Reason]
    owed: int


def reasons(chains: Iterable[Left]) -> dict[str, Reason]:
    """The chains by kind, the most frequent first."""
    found: dict[str, Reason] = {}
    for chain in chains:
        before = found.get(chain.kind)
        found[chain.kind] = Reason(count=before.count + 1 if before else 1, first=before.first if before else chain)
    return dict(sorted(found.items(), key=lambda item: -item[1].count))
