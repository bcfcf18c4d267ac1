"""What stopping at the first success saves, and that the labels of the rule `any` are those of N rollouts."""

from dataclasses import dataclass

import numpy as np

from tests.bench.estimators.cell import SEED
from tests.settings import estimator_settings
from tests.synthetic.chains import chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import RIGHT, Rollouts

ROLLOUTS = 8
CHAINS = 1024
STEPS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """`fewer_...`: rollouts or tokens of fixed N for one of first_success. `unlike`: labels that are not those of fixed N on
    the same rollouts."""

    family: str
    fewer_rollouts: float
    fewer_tokens: float
    labels: int
    unlike: int


def saving(family_name: str) -> Saving:
    family = FAMILIES[family_name](STEPS)
    chains = chains_of(family, CHAINS, SEED)
    drawn = Rollouts(family, chains, SEED)
    said = replay(chains, drawn, estimator_settings("first_success"), rollouts=ROLLOUTS)
    # The last label is the chain's own outcome, the first that of the prefix behind step 1.
    labels = np.array([[label == 1 for label in chain[:-1]] for chain in said.labels])
    block = drawn.first(ROLLOUTS)
    same = (block.outcomes[:, 1:, :ROLLOUTS] == RIGHT).any(axis=2)
    return Saving(
        family=family_name,
        fewer_rollouts=ROLLOUTS * labels.size / float(said.rollouts[:, 1:].sum()),
        fewer_tokens=float(block.tokens[:, 1:, :ROLLOUTS].sum() / said.tokens[:, 1:].sum()),
        labels=labels.size,
        unlike=int((labels != same).sum()),
    )
