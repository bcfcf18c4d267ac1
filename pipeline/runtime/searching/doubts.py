"""What a user should doubt of the scores that a search goes by, before it begins.

These are scores of other steps than those of the scorer's training, or of a policy that they do not fit, a confidence that is
compared with uncalibrated scores, a calibration for another policy, and a gate that nothing can pass.
"""

import asyncio
from collections.abc import Iterator

from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import StepvalueError
from pipeline.engines.registry import policy_for
from pipeline.runtime.scoring.task import calibration_of
from pipeline.scorers.registry import scorer_for
from pipeline.searches.registry import search_for


def doubts(config: SearchRunConfig) -> Iterator[str]:
    """A line for each doubt. Raises InputError for a file that is no calibration, and UsageError for a method, policy or scorer
    that is not installed."""
    if not search_for(config.search).scores:
        return
    scorer = scorer_for(config.scorer)
    yield from scorer.warnings(config.data)
    yield from scorer.warnings_beside(policy_for(config.policy))
    accept, reliability = config.search.accept, config.search.reliability
    if reliability is not None and scorer.states_reliability() is False:
        yield (
            f"search.reliability={reliability:g}: this scorer states no reliability, so nothing will be trusted, and no search "
            "ends early; leave it out, or take a scorer that writes several critiques (scorer=generative scorer.votes=8)"
        )
    calibration = calibration_of(config)
    if calibration is None:
        if accept is not None:
            yield (
                f"search.accept={accept:g} is compared with the scorer's own scores, which may be far from "
                "probabilities: make a calibration with `calibrate` and give calibration=FILE"
            )
        return
    if accept is not None and accept > calibration.highest:
        yield (
            f"search.accept={accept:g} is above all values of calibration={config.calibration}, of which the highest is "
            f"{calibration.highest:.3f}: nothing will be trusted, and no search ends early; ask for less"
        )
    made_for, policy = calibration.made_from.policy, _identity(config)
    if policy is not None and policy != made_for:
        yield (
            f"calibration={config.calibration} is for the policy {made_for}, and {policy} searches: calibrated scores are then "
            "no probabilities; calibrate with rollouts of this policy"
        )


def _identity(config: SearchRunConfig) -> str | None:
    """The policy as `calibrate` knows it; None where it cannot be learned here. Then its workers say why."""
    try:
        return asyncio.run(policy_for(config.policy).facts(config.sampling)).policy
    except (StepvalueError, OSError):
        return None
