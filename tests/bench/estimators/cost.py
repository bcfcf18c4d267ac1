"""What a decision costs: CPU time of `next_rollouts` per rollout that it asks for."""

from tests.bench.estimators.cell import CEILING, SEED, USUAL_TARGET, pooled
from tests.synthetic.chains import chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import Rollouts

STEPS = 16
UNIT = 128
CHAINS = 8 * UNIT


def microseconds(family_name: str) -> float:
    family = FAMILIES[family_name](STEPS)
    chains = chains_of(family, CHAINS, SEED)
    said = replay(chains, Rollouts(family, chains, SEED), pooled(USUAL_TARGET), rollouts=CEILING, unit=UNIT)
    return said.decision_seconds / int(said.rollouts.sum()) * 1e6
