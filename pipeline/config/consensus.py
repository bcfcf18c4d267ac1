"""The settings of consensus labels (`estimator.rule=consensus`): as a change to a finished run, and as an edition records
them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pipeline.config.choices import ConsensusHow, LabelRule
from pipeline.config.fields import RELABEL, Settings

SECTION = "consensus"
RULE = "estimator.rule"
HOW, WITNESSES, MC_RULE, RECALIBRATE = (f"{SECTION}.{name}" for name in ("how", "witnesses", "mc_rule", "recalibrate"))
ABOUT, DIGEST = f"{SECTION}.witness.", f"{SECTION}.digest."
"""Beginnings of the recorded keys with what a witness is, and with the hash of what it says. Its name follows."""
MADE_UP = f"{SECTION}.made_up."
"""Beginning of the recorded keys that say why what a witness says is no evidence."""
CAPPED = f"{SECTION}.capped"
"""The recorded key that says why the certainty of labels has limits, and which. It is missing where they have none."""
USUAL = ConsensusHow.posterior
"""`how` where it is not given."""


@dataclass(kw_only=True, slots=True)
class ConsensusChange(Settings):
    """With estimator.rule=consensus: what makes the labels. null keeps the setting of the current labels."""

    SECTION: ClassVar[str] = SECTION
    how: Annotated[ConsensusHow | None, RELABEL] = None
    """How opinions make a label. exact: chains keep their labels where all opinions name the same first error, or none. side:
    steps are labelled where all agree, in chains of which all say that there is an error, or that there is none. posterior: the
    likeliest place of the first error counts. At first: posterior."""
    witnesses: Annotated[list[str] | None, RELABEL] = None
    """The second opinions, such as judge:NAME, checks:VERIFIER or scores:FILE. A score run's folder and the names of plug-ins
    may be given too. At first: all judges of the run, and all verifiers that have checked it."""
    mc_rule: Annotated[LabelRule | None, RELABEL] = None
    """The rule by which Monte Carlo alone labels. At first: that of the labels before."""
    recalibrate: Annotated[str | None, RELABEL] = None
    """A file of people's labels of some chains of the run, as `agree` reads it, in the layout of the run's input. No certainty
    is then above what these chains support. Empty: none."""

    def check(self) -> None:
        if self.mc_rule is LabelRule.consensus:
            raise ValueError(
                "consensus.mc_rule=consensus: give the rule by which Monte Carlo alone labels, such as threshold"
            )
        if self.witnesses is not None and len(set(self.witnesses)) < len(self.witnesses):
            raise ValueError(f"consensus.witnesses={self.witnesses}: a witness is given twice")


def is_consensus(settings: Mapping[str, object]) -> bool:
    """Whether labels with these recorded settings are made by consensus."""
    return settings.get(RULE) == LabelRule.consensus.value


def witness_names(settings: Mapping[str, object]) -> list[str]:
    """The witnesses of consensus labels, by their recorded settings."""
    names = settings.get(WITNESSES)
    return [str(name) for name in names] if isinstance(names, list) else []


def made_up_witnesses(settings: Mapping[str, object]) -> list[str]:
    """Why what witnesses of consensus labels say is no evidence, a clause for each that made it up."""
    return [str(text) for key, text in settings.items() if key.startswith(MADE_UP)] if is_consensus(settings) else []


def cap_text(settings: Mapping[str, object]) -> str:
    """Why the certainty of consensus labels has limits, and which: a sentence. Empty: it has none."""
    return str(settings.get(CAPPED) or "") if is_consensus(settings) else ""


def describe_consensus(settings: Mapping[str, object]) -> str:
    """The rule of consensus labels in words. `settings`: those that the edition records."""
    names = witness_names(settings)
    others = f" and {', '.join(names)}" if names else " alone"
    alone = f"Monte Carlo ({settings.get(MC_RULE)})"
    match settings.get(HOW):
        case ConsensusHow.exact.value:
            text = f"chains keep their labels if {alone}{others} name the same first error, or none"
        case ConsensusHow.side.value:
            text = f"steps are labelled where {alone}{others} agree, in chains of which all say that there is an error, or none"
        case _:
            sure = settings.get("estimator.certainty")
            text = (
                f"a step is bad if it is the first error with a probability of at least {sure}, good if it and all before it "
                f"have none with that probability, given {alone}{others}, each as reliable as it is in this run"
            )
    return "; ".join(filter(None, [f"consensus: {text}", cap_text(settings)]))
