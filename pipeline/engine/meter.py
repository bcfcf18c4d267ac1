"""Counts what vLLM does while requests still run, from the statistics that it keeps of every engine step.

The completions themselves come when they are final, which for long answers is minutes apart.
"""

from typing import Any

from pipeline.records import EngineWork


class TokenMeter:
    """A stat logger as vLLM 0.26 to 0.33 wants one, and its own factory: pass it in `stat_loggers`.

    Its `work` knows nothing of `attended`.
    """

    def __init__(self) -> None:
        self.work = EngineWork()

    def __call__(self, *_engine: Any) -> "TokenMeter":
        return self

    def record(self, _scheduler_stats: Any, iteration_stats: Any, *_others: Any, **_more: Any) -> None:
        """What vLLM calls after every engine step. `iteration_stats` is None for one without output."""
        if iteration_stats is not None:
            prompts = iteration_stats.prompt_token_stats
            self.work += EngineWork(
                generated=iteration_stats.num_generation_tokens,
                steps=int(iteration_stats.num_generation_tokens > 0),
                prompt=prompts.total,
                prefilled=prompts.computed,
            )

    def log_engine_initialized(self) -> None:
        """vLLM calls it once; there is nothing to say."""


def leave_prometheus_out(engine: Any) -> None:
    """Take out of vLLM's `AsyncLLM` the logger that it adds beside any other: that one fills a histogram for every token.

    A vLLM that keeps its loggers elsewhere keeps that one too, which costs time and nothing else.
    """
    manager = getattr(engine, "logger_manager", None)
    if manager is not None:
        manager.stat_loggers = [
            logger for logger in manager.stat_loggers if type(logger).__name__ != "PrometheusStatLogger"
        ]
