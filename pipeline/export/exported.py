"""What an export came to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A chain that was left out, or that the trainer would misread: a word to count by, and a sentence."""

    chain_id: str
    source_id: str | None
    kind: str
    detail: str

    @property
    def told(self) -> str:
        """The chain by the name its owner knows, where a terminal can show that, and what is the matter with it."""
        known = self.source_id if self.source_id and self.source_id.isprintable() else self.chain_id
        return f"chain {known}: {self.detail}"


@dataclass(kw_only=True, slots=True)
class FileCounts:
    """What one file holds, counted up while it is written. `unlabelled` steps stand in it without a label."""

    rows: int = 0
    problems: set[str] = field(default_factory=set)
    steps: int = 0
    good: int = 0
    bad: int = 0

    @property
    def unlabelled(self) -> int:
        return self.steps - self.good - self.bad


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
