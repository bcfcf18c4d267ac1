"""A verifier of one kind of sentence: "The word tree has 4 letters"."""

import re
from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict, Verifier

_CLAIM = re.compile(r"The word ([a-z]{1,40}) has (\d{1,3}) letters\.?")


@dataclass(kw_only=True, slots=True)
class LettersConfig(VerifierConfig):
    kind: Annotated[str, BY_GROUP] = "letters"
    silent: bool = False
    """Give no evidence, which the tests want to see refused."""


class Letters(Verifier):
    Config = LettersConfig
    settings: LettersConfig

    def verify(self, step: StepInContext) -> Finding:
        claim = _CLAIM.fullmatch(step.step)
        if claim is None:
            return UNKNOWN
        word, letters = claim.groups()
        verdict = StepVerdict.HOLDS if len(word) == int(letters) else StepVerdict.REFUTED
        evidence = "" if self.settings.silent else f"{word} has {len(word)} letters"
        return Finding(verdict=verdict, evidence=evidence, covers=Covers.WHOLE)
