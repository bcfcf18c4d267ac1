"""The run of `judge`: the chains of a run of `label` -> units -> critiques, by Ray workers that write a run directory."""
