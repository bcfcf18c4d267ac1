"""The verifier `algebra`: a step is refuted by a false identity, or by a solution that does not solve its equation. Pure.

It may take long on hostile polynomials, up to the limits of the answer checker, so a run calls it in a process with a deadline.
"""

from pipeline.verifiers.algebra.claims import Claim, identities, solutions
from pipeline.verifiers.algebra.formulas import formulas_of
from pipeline.verifiers.arithmetic.tokens import plain
from pipeline.verifiers.arithmetic.words import has_other_arithmetic, is_revoked, is_unsure
from pipeline.verifiers.base import UNKNOWN, Finding, StepInContext, StepVerdict, Verifier
from pipeline.verifiers.sentences import in_a_line, sentence_around
from pipeline.verifiers.settings import AlgebraConfig

MOST_SHOWN = 3


class Algebra(Verifier):
    """Identities in unknowns and solved equations, by the exact algebra of the answer checker."""

    Config = AlgebraConfig
    settings: AlgebraConfig

    def verify(self, step: StepInContext) -> Finding:
        if "=" not in step.step or len(step.step) > self.settings.most_characters:
            return UNKNOWN
        text = plain(step.step)
        claims = [*_identities(text), *_solutions(step, text, self.settings.most_characters)]
        held = [claim.text for claim, _ in claims if claim.holds]
        for claim, sentence in claims:
            if not claim.holds and not _is_doubtful(step, sentence):
                return Finding(verdict=StepVerdict.REFUTED, evidence=in_a_line(f"{claim.text}: {claim.reason}", 600))
        if not held:
            return UNKNOWN
        shown = "; ".join(in_a_line(each) for each in held[:MOST_SHOWN])
        more = f"; and {len(held) - MOST_SHOWN} more" if len(held) > MOST_SHOWN else ""
        return Finding(verdict=StepVerdict.HOLDS, evidence=shown + more)


def _identities(text: str) -> list[tuple[Claim, str]]:
    formulas = formulas_of(text)
    before = [sentence_around(text, formula.start, formula.end) for formula in formulas]
    return [(claim, sentence_around(text, claim.start, claim.end)) for claim in identities(formulas, before)]


def _solutions(step: StepInContext, text: str, longest: int) -> list[tuple[Claim, str]]:
    earlier = plain(step.earlier[-1]) + "\n" if step.earlier and len(step.earlier[-1]) <= longest else ""
    both = earlier + text
    return [
        (claim, sentence_around(both, claim.start, claim.end))
        for claim in solutions(formulas_of(both), both, len(earlier))
    ]


def _is_doubtful(step: StepInContext, sentence: str) -> bool:
    return (
        is_unsure(sentence)
        or is_revoked(step.step)
        or has_other_arithmetic(step.step)
        or has_other_arithmetic(step.problem)
    )
