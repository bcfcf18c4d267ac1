"""The settings of consensus labels (`estimator.rule=consensus`), in the form of a change to a finished run."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pipeline.config.choices import ConsensusHow, LabelRule
from pipeline.config.fields import RELABEL, Settings

SECTION = "consensus"
USUAL = ConsensusHow.posterior
"""`how` where it is not given."""


@dataclass(kw_only=True, slots=True)
class ConsensusChange(Settings):
    """With estimator.rule=consensus: what makes the labels. null keeps the setting of the current labels."""

    SECTION: ClassVar[str] = SECTION
    how: Annotated[ConsensusHow | None, RELABEL] = None
    """exact: chains keep their labels where all opinions name the same first error, or none. side: labels where all say that there
    is an error, or none. posterior: the likeliest place of the first error. At first: posterior."""
    witnesses: Annotated[list[str] | None, RELABEL] = None
    """The second opinions: judge:NAME, scores:FILE_OR_FOLDER of `score`, or those of plug-ins. At first: all judges of the run."""
    mc_rule: Annotated[LabelRule | None, RELABEL] = None
    """The rule by which Monte Carlo alone labels. At first: that of the labels before."""

    def check(self) -> None:
        if self.mc_rule is LabelRule.consensus:
            raise ValueError(
                "consensus.mc_rule=consensus: give the rule by which Monte Carlo alone labels, such as threshold"
            )
        if self.witnesses is not None and len(set(self.witnesses)) < len(self.witnesses):
            raise ValueError(f"consensus.witnesses={self.witnesses}: a witness is given twice")
