"""The earlier path of `graders.reward`. verl settings may still name this file."""

from pipeline.graders.reward import accuracy_reward, compute_score

__all__ = ["accuracy_reward", "compute_score"]
