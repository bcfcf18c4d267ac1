"""Determines where completions end: the effective value of `sampling.stop_at_answer`."""

from pipeline.config.choices import PromptStyle, Thinking
from pipeline.config.label import LabelConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import UsageError
from pipeline.engines.registry import policy_for
from pipeline.graders.base import Ending
from pipeline.graders.registry import GRADERS, grader_type

Completing = LabelConfig | SearchRunConfig
"""Settings of a command that has a policy complete texts whose answers a grader finds."""


def stops_at_answer(config: Completing) -> bool:
    """The setting, or its default if it is null. Raises UsageError if it is true and the grader or the policy cannot do it."""
    asked, grader = config.sampling.stop_at_answer, grader_type(config.grader)
    inside = config.policy.prompt.thinking is Thinking.inside
    settings, policy = complete_settings(config.grader, GRADERS), policy_for(config.policy)
    if asked is None:
        plain = config.policy.prompt.style is PromptStyle.plain
        return plain and not inside and policy.ends_at_answers and grader.ends_by_default(settings)
    if asked and (inside or grader.ending_for(settings) is None):
        why = "does not know one within thinking (policy.prompt.thinking=inside)" if inside else grader.no_ending
        raise UsageError(f"sampling.stop_at_answer=true: grader={config.grader.kind} {why}; leave it out")
    if asked and not policy.ends_at_answers:
        raise UsageError(
            "sampling.stop_at_answer=true needs vLLM in this process (policy=hf): "
            f"policy={config.policy.kind} ends completions only at the texts in sampling.stop"
        )
    return asked


def ending_for(config: Completing) -> Ending | None:
    """The grader's test for a completion that has stated its answer; None if completions do not end there."""
    if not stops_at_answer(config):
        return None
    found: Ending | None = grader_type(config.grader).ending_for(complete_settings(config.grader, GRADERS))
    return found
