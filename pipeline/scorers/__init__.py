"""Process reward models: problem and steps -> a score for each step. See README.md."""
