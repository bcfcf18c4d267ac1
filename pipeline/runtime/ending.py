"""Where completions end: what `sampling.stop_at_answer` comes down to. Pure."""

import re

from pipeline.config.choices import GraderKind, PolicyKind, PromptStyle
from pipeline.config.label import LabelConfig
from pipeline.graders.math.answered import Answered


def stops_at_answer(config: LabelConfig) -> bool:
    """The setting, or what its null stands for."""
    asked, grader = config.sampling.stop_at_answer, config.grader
    if asked is not None:
        return asked
    plain = config.policy.prompt.style is PromptStyle.plain and config.policy.kind is not PolicyKind.openai
    return plain and grader.kind is GraderKind.math and grader.answer_pattern is None


def answered(config: LabelConfig) -> Answered | None:
    """When a completion has stated its answer, and so ends; None where it goes on."""
    pattern = config.grader.answer_pattern
    return Answered(pattern=re.compile(pattern) if pattern else None) if stops_at_answer(config) else None
