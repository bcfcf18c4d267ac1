"""Chat models and generative process reward models that judge steps in words: prompts, verdicts, votes."""
