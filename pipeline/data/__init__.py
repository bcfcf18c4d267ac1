"""The input: rows, their layouts, problems, steps and prompts."""
