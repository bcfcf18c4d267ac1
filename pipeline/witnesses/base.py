"""The interface of a witness: it says of a chain where its first error is, or which of its steps hold.

A witness is named `KIND:SOURCE`: the kind of a registered witness, and what it reads, such as the name of a judge or a file.
What it says is a claim (`consensus.evidence`), and how much a claim is worth is learned from the run. So a witness need not be
right, and its probabilities need not be calibrated."""

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, Protocol

from pipeline.consensus import evidence
from pipeline.consensus.evidence import Claim, PositionClaim, StepClaim
from pipeline.core.records import ChainText


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSource:
    """What a witness reads. `run_dir`: the run whose chains are labelled. `source`: the text after the colon, may be empty."""

    run_dir: str
    kind: str
    source: str

    @property
    def name(self) -> str:
        """The name of the witness, as the user gives it."""
        return f"{self.kind}:{self.source}" if self.source else self.kind


class Witness(Protocol):
    """One witness with its source. An implementation defines all but `__init__`."""

    source: WitnessSource

    def __init__(self, source: WitnessSource) -> None:
        self.source = source

    @abstractmethod
    def about(self) -> str:
        """What it is, in a line: the model and how it was asked. It is recorded with the labels.

        Raises UsageError or InputError where the source does not exist or cannot be used, StoreError where it is damaged."""
        ...

    @abstractmethod
    def digest(self) -> str:
        """A hash of everything that it says. Labels are made again where it has changed. Raises as `about` does."""
        ...

    @abstractmethod
    def claim(self, chain: ChainText) -> Claim | None:
        """What it says of a chain, which comes without its known answers. None: nothing. Raises as `about` does."""
        ...

    def most_votes(self) -> float:
        """The largest sum of the votes of a `PositionClaim`: what a share of votes is a share of."""
        return 1.0

    def writer(self) -> Mapping[str, object]:
        """The recorded settings of the policy that wrote what it says, by dotted key. Empty: none wrote it."""
        return {}

    def made_up(self) -> str:
        """Why what it says is no evidence, such as that an oracle made it. Empty: it is evidence."""
        return ""


# Words in the names of models of many families.
_COMMON = (
    "awq base chat code coder distill flash gguf gptq instruct large math mini model prm reward small thinking turbo"
)


def family(policy: Mapping[str, object]) -> frozenset[str]:
    """The kin of a policy by its recorded settings: the hash of its weights or tokenizer, and the words of its model's name,
    such as qwen, or of its kind, where it has no model."""
    name = str(policy.get("policy.model") or policy.get("policy.kind", "")).lower()
    words = re.findall("[a-z]{3,}", PurePath(name).name)
    return frozenset({*words, str(policy.get("policy_fingerprint", ""))}) - {*_COMMON.split(), ""}


def wrong_claim(found: Any, chain: ChainText) -> str:
    """What is wrong with a result of `Witness.claim`, or an empty text."""
    if found is None:
        return ""
    if not isinstance(found, PositionClaim | StepClaim):
        return f"it must return a PositionClaim, a StepClaim or None, but returned {found!r:.200}"
    wrong = evidence.wrong_claim(found, len(chain.steps))
    return f"it speaks of chain {chain.chain_id} with {wrong}" if wrong else ""


ANSWERS: Mapping[str, Callable[..., str]] = {"claim": wrong_claim}
