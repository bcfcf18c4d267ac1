"""All chains of a problem -> rows of pairs of their steps, for format=preference."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pipeline.core.errors import UsageError
from pipeline.export.base import Exporter, Plan, marks_of
from pipeline.export.choose import PLACE, VALUES, Choice, LabelRow, LeftOut, hard_labels, soft_values
from pipeline.export.example import LabelCounts
from pipeline.export.formats import preference
from pipeline.export.formats.base import Encoder, Marks
from pipeline.export.formats.preference import Branching, offences, pairs, row, token_offences
from pipeline.export.made import Made
from pipeline.export.settings import (
    Balance,
    ExportConfig,
    FileType,
    Neutral,
    PairReader,
    PreferenceConfig,
    Target,
    Undecided,
)

NO_PAIR = LeftOut(
    kind="no_pair",
    detail="no step has a sibling with the other label; preference.margin=... pairs by values, threshold=... labels anew",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairRows:
    """A row for each pair, which counts as its chosen chain's, one good step and one bad. Chains in no pair are left out.

    Tokens are looked at for TRL alone: Step-DPO's reader puts a template of its own around the problem.
    """

    choice: Choice
    config: PreferenceConfig
    separator: str
    encoder: Encoder | None
    max_length: int | None

    def __call__(self, chains: Sequence[LabelRow]) -> Iterator[Made]:
        by_id = {chain.chain_id: chain for chain in chains}
        paired: set[str] = set()
        for pair in pairs([self._branching(chain) for chain in chains], self.config, self.separator):
            written = row(pair, self.config.reader, self.separator)
            found = tuple(offences(pair, self.separator))
            if self.encoder is not None and self.config.reader is PairReader.trl:
                found += tuple(token_offences(written, self.encoder, self.max_length))
            paired |= {pair.chosen.chain.chain_id, pair.rejected.chain.chain_id}
            yield Made(
                chain=by_id[pair.chosen.chain.chain_id], row=written, labels=LabelCounts(good=1, bad=1), offences=found
            )
        for chain in chains:
            if chain.chain_id not in paired:
                yield Made(chain=chain, left_out=NO_PAIR)

    def _branching(self, chain: LabelRow) -> Branching:
        return Branching(
            chain_id=chain.chain_id,
            problem_id=chain.problem_id,
            problem=chain.problem,
            gold_answer=chain.gold_answer,
            outcome=chain.outcome,
            steps=chain.steps,
            prefix_ids=(chain.root_prefix_id, *chain.prefix_ids),
            scores=soft_values(chain, self.choice.soft),
            labels=hard_labels(chain, self.choice),
        )


class PairExporter(Exporter):
    """Pairs of sibling steps, for step-wise preference training."""

    Config = PreferenceConfig

    def plan(self, config: ExportConfig, encoder: Encoder | None) -> Plan:
        for key in ("target", "undecided", "after_error"):
            if getattr(config, key) is not None:
                raise UsageError(f"{key}: format=preference pairs single steps by their labels or values; leave it out")
        if config.balance is not Balance.none:
            raise UsageError(f"balance={config.balance.value}: every pair has a good step and a bad one; leave it out")
        marks = marks_of(config, Marks(separator=preference.SEPARATOR))
        choice = Choice(
            target=Target.hard,
            soft=config.soft,
            threshold=config.threshold,
            undecided=Undecided.ignore,
            neutral=config.neutral or Neutral.keep,
            after_error=True,
            whole=True,
        )
        return Plan(
            make=PairRows(
                choice=choice,
                config=config.preference,
                separator=marks.separator,
                encoder=encoder,
                max_length=config.max_length or preference.MAX_LENGTH,
            ),
            schema=preference.schema(config.preference.reader),
            file=config.file or FileType.jsonl,
            marks=marks,
            reads=(*VALUES, *PLACE),
        )


PREFERENCE = PairExporter()
