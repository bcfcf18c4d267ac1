"""The chains that `score` scores."""

from pipeline.config.score import ScoreConfig
from pipeline.runtime.chain_run.chains import ChainSource
from pipeline.runtime.chain_run.given import chain_tables


def score_source(config: ScoreConfig) -> ChainSource:
    """The chains to score."""
    return ChainSource(
        place=config.run_dir or config.data.path,
        tables=lambda left_out: chain_tables(config, left_out),
        to_do="score",
        done="scored",
        results="scores",
        elsewhere="another out",
    )
