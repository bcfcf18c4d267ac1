"""Rewards for RL trainers under their earlier path, which verl is given as a file. See `graders.reward`."""

from pipeline.graders.reward import accuracy_reward, compute_score

__all__ = ["accuracy_reward", "compute_score"]
