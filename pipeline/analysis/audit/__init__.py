"""Every invariant of a run directory, proved again from its files."""
