"""The export formats: the row of each, and what its trainer would misread."""
