"""The run of `score`: chains -> units -> step scores, in one process or by Ray workers that write a run directory."""
