"""The verifier `algebra`: a step is refuted by a false identity, or by a solution that does not solve its equation. Pure.

It may take long on hostile polynomials, up to the limits of the answer checker, so a run calls it in a process with a deadline.
"""

from pipeline.verifiers.algebra.claims import claims_of
from pipeline.verifiers.arithmetic.tokens import plain
from pipeline.verifiers.arithmetic.words import has_other_arithmetic, is_doubtful
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.sentences import finding, holding, sentence_around
from pipeline.verifiers.settings import AlgebraConfig


class Algebra(Verifier):
    """Identities in unknowns and solved equations, by the exact algebra of the answer checker."""

    Config = AlgebraConfig
    settings: AlgebraConfig

    def verify(self, step: StepInContext) -> Finding:
        longest = self.settings.most_characters
        if "=" not in step.step or len(step.step) > longest:
            return UNKNOWN
        before = plain(step.earlier[-1]) + "\n" if step.earlier and len(step.earlier[-1]) <= longest else ""
        text = before + plain(step.step)
        claims = claims_of(text, len(before))
        for claim in claims:
            doubtful = claim.holds or has_other_arithmetic(step.problem)
            if not doubtful and not is_doubtful(step, sentence_around(text, claim.start, claim.end)):
                return finding(StepVerdict.REFUTED, f"{claim.text}: {claim.reason}")
        return holding([claim.text for claim in claims if claim.holds])
