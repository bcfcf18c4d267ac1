"""Which estimators a stored log can serve: what another one stopped or left out is not there."""

from pipeline.config.choices import EstimatorName
from pipeline.config.label import EstimatorConfig


def objection(sampled: EstimatorConfig, wanted: EstimatorConfig) -> str | None:
    """Why labels with the `wanted` settings cannot be made of rollouts that were asked for with the `sampled` ones; None where
    they can. The settings of the label rule do not matter."""
    name = wanted.name
    match sampled.name:
        case EstimatorName.fixed:
            return None
        case EstimatorName.first_success if name is EstimatorName.fixed:
            return (
                "prefixes were sampled until they had a right rollout (estimator.name=first_success), so correct / graded "
                "would be biased upwards"
            )
        case EstimatorName.first_success if name is EstimatorName.first_success:
            return _longer(sampled, wanted)
        case EstimatorName.first_success | EstimatorName.bisect if name is EstimatorName.pooled and sampled.batch > 1:
            return (
                f"prefixes were sampled {sampled.batch} at a time (estimator.batch): which rollouts came in behind the first "
                "right one depends on how long they were"
            )
        case EstimatorName.pooled if name is not EstimatorName.pooled:
            return (
                "rollouts went where they taught most about a whole chain (estimator.name=pooled), so a prefix on its own has "
                "too few of them, and a number that depends on their outcomes"
            )
        case EstimatorName.bisect if name in (EstimatorName.fixed, EstimatorName.first_success):
            return "only the prefixes that a search came by were sampled (estimator.name=bisect)"
        case _:
            return None


def _longer(sampled: EstimatorConfig, wanted: EstimatorConfig) -> str | None:
    if wanted.successes <= sampled.successes:
        return None
    return f"prefixes were sampled until they had {sampled.successes} right rollouts: estimator.successes can be lowered only"
