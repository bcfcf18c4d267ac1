"""The `audit` command: proves every invariant of a run directory again from its files."""
