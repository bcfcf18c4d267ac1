"""A run over chains, as `score`, `judge` and `check` have it: chains -> units -> one result for each chain, by Ray workers."""
