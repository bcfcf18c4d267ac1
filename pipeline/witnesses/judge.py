"""The critiques of a judge of the run as a witness: `judge:NAME`. Its votes are the newest readings of what it wrote.

A critique that names no step of the chain, or that could not be read, is no vote. A chain without a vote has no claim.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from pipeline.consensus.evidence import PositionClaim
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_count
from pipeline.core.records import ChainText, ReadingKind
from pipeline.core.tables import CRITIQUES
from pipeline.storage.location import storage_at
from pipeline.storage.stored_critiques import JUDGE_RUNS, StoredJudge
from pipeline.witnesses.base import Witness

_COLUMNS = ("chain_id", "reading", "first_error", "model")
_NONE = 0
"""The place that stands for no error."""


class JudgeWitness(Witness):
    """See the module."""

    def about(self) -> str:
        recorded = self._judge.identity
        template = recorded.get("judge.template")
        shown = ", and was shown the known answers" if recorded.get("judge.show_answer") else ""
        how = f" by the template {template}" if template else ""
        votes, models = self._read
        return (
            f"{', '.join(models) or 'a judge'} gave {format_count(self._judge.votes, 'vote')} on each of "
            f"{format_count(len(votes), 'chain')}{how}{shown}"
        )

    def digest(self) -> str:
        return self._judge.digest

    def claim(self, chain: ChainText) -> PositionClaim | None:
        steps = len(chain.steps)
        votes = [0.0] * (steps + 1)
        of_chains, _ = self._read
        for place, count in of_chains.get(chain.chain_id, {}).items():
            if place <= steps:
                votes[place - 1 if place != _NONE else steps] += count
        return PositionClaim(votes=tuple(votes)) if any(votes) else None

    def most_votes(self) -> float:
        return float(self._judge.votes)

    def writer(self) -> Mapping[str, object]:
        return self._judge.identity

    def made_up(self) -> str:
        if self._judge.identity.get("judge.kind") != "oracle":
            return ""
        return (
            f"the judge {self._judge.name} is an oracle: it draws its critiques from errors of its own, without a model"
        )

    @cached_property
    def _judge(self) -> StoredJudge:
        if not self.source.source:
            raise UsageError(f"consensus.witnesses={self.source.name}: name the judge, as in judge:NAME")
        name = self.source.source
        judge = JUDGE_RUNS.read(storage_at(self.source.run_dir), name, partial=True)
        if judge.unfinished:
            raise UsageError(
                f"{self.source.name} has not judged all chains yet ("
                f"{judge.owed}): start `judge run_dir={self.source.run_dir} "
                f"judge.name={name}` again with its settings, name other witnesses in consensus.witnesses=[...], or delete "
                f"the folder judges/{name}"
            )
        return judge

    @cached_property
    def _read(self) -> tuple[Mapping[str, Mapping[int, int]], Sequence[str]]:
        """Chain id -> the place of the first error, and how many votes name it; and the models that wrote the critiques."""
        votes: dict[str, dict[int, int]] = {}
        models: set[str] = set()
        for frame in self._judge.frames(CRITIQUES, _COLUMNS):
            for chain, kind, error, model in frame.iter_rows():
                models.add(model)
                of_chain = votes.setdefault(chain, {})
                if kind in (ReadingKind.ERROR.value, ReadingKind.NO_ERROR.value):
                    place = int(error) if kind == ReadingKind.ERROR.value else _NONE
                    of_chain[place] = of_chain.get(place, 0) + 1
        return votes, sorted(models)
