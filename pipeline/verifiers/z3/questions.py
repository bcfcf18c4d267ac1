"""What a formal step asks: whether premises entail a claim."""

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.verifiers.base import Covers
from pipeline.verifiers.z3.terms import Term


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Whether premises entail a claim; with `is_independence`, whether they entail neither the claim nor its negation.

    `given`, `claimed`: premises and claim as evidence names them. `written`: the text of a term in the layout of the step.
    `doubt`: why a claim that does not follow is not refuted, empty if it is. `covers`: what part of the step the claim is."""

    premises: tuple[Term, ...]
    claim: Term
    given: str
    claimed: str
    written: Callable[[Term], str]
    is_independence: bool = False
    doubt: str = ""
    covers: Covers = Covers.WHOLE
