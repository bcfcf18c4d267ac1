"""A run over chains, as `score` and `judge` have it: chains -> units -> one result for each chain, by Ray workers."""
