"""Which rollouts of a run are fair trials: their number did not depend on outcomes. Pure."""

from pipeline.estimators.base import Estimator, Need
from pipeline.trees.tree import FairRounds

NONE: FairRounds = 0
FIRST: FairRounds = 1
ALL: FairRounds = None


def fair_rounds(estimator: Estimator) -> FairRounds:
    """The rounds of a prefix whose rollouts are fair trials of what they pass through.

    A first round is decided before any outcome of its problem is known. Where rollouts are stopped once others have succeeded,
    those that finish are the short ones, so even the first round is not fair.
    """
    if estimator.one_round:
        return ALL
    return NONE if Need.FREE_ORDER in estimator.lacks() else FIRST
