"""What the default labels say of bad steps and of the step with the error, beside those of fixed N=8, against known values."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pipeline.config.choices import Goal, Interval, LabelRule
from pipeline.config.label import EstimatorConfig
from pipeline.estimators.settings import FixedConfig, PooledConfig
from tests.synthetic.chains import chains_of
from tests.synthetic.families import FAMILIES
from tests.synthetic.judged import BAD, FALL, HardLabels, judged
from tests.synthetic.replayed import replay
from tests.synthetic.rollouts import Rollouts

CHAINS = {8: 512, 32: 256}
SEED = 11
FIXED = 8
CEILING = 16
_POOLED = PooledConfig(interval=Interval.posterior, rule=LabelRule.lasting_drop, threshold=BAD)
METHODS: dict[str, tuple[EstimatorConfig, int]] = {
    "pooled": (_POOLED, CEILING),
    "pooled, target_sd=0.1": (replace(_POOLED, target_sd=0.1), CEILING),
    "pooled, goal=locate": (replace(_POOLED, goal=Goal.locate), CEILING),
    "pooled, threshold 0.1": (replace(_POOLED, rule=LabelRule.threshold), CEILING),
    "pooled, rule=posterior": (replace(_POOLED, rule=LabelRule.posterior), CEILING),
    "fixed N=8": (FixedConfig(rule=LabelRule.lasting_drop), FIXED),
    "fixed N=8, rule=any": (FixedConfig(), FIXED),
}


def hard_labels(family_name: str, steps: int) -> list[HardLabels]:
    family = FAMILIES[family_name](steps)
    chains = chains_of(family, CHAINS[steps], SEED)
    drawn = Rollouts(family, chains, SEED)
    return [
        judged(chains, replay(chains, drawn, config, rollouts=rollouts), family_name, method)
        for method, (config, rollouts) in METHODS.items()
    ]


def hard_table(found: Sequence[HardLabels]) -> Iterator[str]:
    yield (
        "hard labels and the step with the error: of inner steps that are bad by lasting_drop on the true values, the share "
        "labelled 0; of inner 0s, the share that is bad; F1 of first bad steps;"
    )
    yield f"chains with a fall of at least {FALL:g}: located at the right step, and value before it within its interval"
    yield (
        f"  {'family':<12}{'K':>3}  {'labels by':<24}{'tok/step':>9}{'RMSE':>7}{'bad are 0':>11}{'0s are bad':>12}"
        f"{'F1':>6}{'located':>9}{'covered':>9}{'error/claim':>13}"
    )
    for each in found:
        claim = "-" if each.error_over_claim is None else f"{each.error_over_claim:.2f}"
        yield (
            f"  {each.family:<12}{each.steps:>3}  {each.method:<24}{each.tokens:>9,.0f}{each.rmse:>7.3f}{each.recall:>11.0%}"
            f"{each.precision:>12.0%}{each.f1:>6.2f}{each.located:>9.0%}{each.covered:>9.0%}{claim:>13}"
        )
