"""Votes of a judge whose confusion is known: which first error it names, given the true one. Pure.

Positions of a chain of K steps are the entries of a tuple of K + 1 probabilities: index j < K means that the first error is
step j + 1, index K that there is none.

Votes on one chain are draws from Polya's urn, so they are exchangeable: each of them has the probabilities of the confusion,
and two of them are equal with the probability rho + (1 - rho) * sum(p^2), where rho is the correlation (of the indicators of
each position). Vote i repeats one of the i - 1 votes before with the probability (i - 1) / (alpha + i - 1), alpha = (1 - rho) /
rho, and is a new draw else (Dirichlet-multinomial; Blackwell and MacQueen 1973).
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Confusion:
    """How one vote errs. All are probabilities.

    `exact`, `early`, `late`: of a chain with an error, that the vote names its step, one before, one after; the rest says that
    there is none. Positions before are equally likely, and so are those after. `false_alarm`: of a chain without an error, that
    the vote names a step, each equally likely.
    """

    exact: float
    early: float
    late: float
    false_alarm: float

    def probabilities(self, steps: int, first_error: int | None) -> tuple[float, ...]:
        """The probability of each position of a vote on a chain of `steps` steps. `first_error`: the true one, from 1; None
        without an error.

        The first step has none before, the last one none after: the probability of what cannot be goes to the others in their
        proportion, and to the exact step where these have none. A chain without steps has no error.
        """
        if first_error is None or not steps:
            alarm = self.false_alarm if steps else 0.0
            return (*(alarm / steps for _ in range(steps)), 1.0 - alarm)
        before, after = first_error - 1, steps - first_error
        early, late = self.early if before else 0.0, self.late if after else 0.0
        none = max(0.0, 1.0 - self.exact - self.early - self.late)
        total = self.exact + early + late + none
        if total <= 0.0:
            return tuple(float(position == before) for position in range(steps + 1))
        return (
            *(early / total / before for _ in range(before)),
            self.exact / total,
            *(late / total / after for _ in range(after)),
            none / total,
        )


def correlated_votes(
    probabilities: Sequence[float], correlation: float, uniforms: Sequence[tuple[float, float]]
) -> list[int]:
    """Positions of votes on one chain: as many as there are pairs of independent numbers from [0, 1). Each vote depends on its
    own pair and on those before, so more votes leave the first ones as they are.

    `correlation`: in [0, 1).
    """
    total = list(accumulate(probabilities))
    votes: list[int] = []
    for urn, draw in uniforms:
        # urn * (alpha + i - 1) falls onto one of the i - 1 votes, or onto alpha; all times rho, which may be 0.
        place = urn * ((1.0 - correlation) + correlation * len(votes))
        earlier = int(place / correlation) if correlation > 0.0 and place < correlation * len(votes) else len(votes)
        votes.append(votes[earlier] if earlier < len(votes) else _position(total, draw))
    return votes


def _position(total: Sequence[float], draw: float) -> int:
    """The position that a number from [0, 1) falls onto. `total`: the probabilities added up."""
    found = bisect_right(total, draw * total[-1])
    # A draw at the very end of rounding takes the last position that is possible.
    while found >= len(total) or (found > 0 and total[found] == total[found - 1]):
        found -= 1
    return found
