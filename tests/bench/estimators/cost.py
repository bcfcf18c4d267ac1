"""What a decision costs: CPU time of `next_rollouts` per rollout that it asks for."""

from dataclasses import dataclass

from tests.bench.estimators.cell import CEILING, SEED, USUAL_TARGET, pooled
from tests.synthetic.chains import chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import Rollouts

STEPS = 16
UNIT = 128
CHAINS = 8 * UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    family: str
    microseconds: float
    rollouts: int


def cost(family_name: str) -> Cost:
    family = FAMILIES[family_name](STEPS)
    chains = chains_of(family, CHAINS, SEED)
    said = replay(chains, Rollouts(family, chains, SEED), pooled(USUAL_TARGET), rollouts=CEILING, unit=UNIT)
    rollouts = int(said.rollouts.sum())
    return Cost(family=family_name, microseconds=said.decision_seconds / rollouts * 1e6, rollouts=rollouts)
