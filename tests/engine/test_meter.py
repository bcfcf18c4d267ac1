"""Work is counted from what vLLM says of each step, however many arguments it says it with."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from pipeline.engine.meter import TokenMeter, leave_prometheus_out


@dataclass
class Prompts:
    """vLLM's PromptTokenStats, as far as it is read."""

    computed: int
    total: int


@dataclass
class Step:
    """vLLM's IterationStats, as far as it is read."""

    num_generation_tokens: int
    prompt_token_stats: Prompts


STEPS = st.builds(
    Step, st.integers(0, 512), st.builds(Prompts, computed=st.integers(0, 99), total=st.integers(99, 999))
)


@given(st.lists(st.none() | STEPS))
def test_the_tokens_of_all_steps_add_up(steps: list[Step | None]) -> None:
    meter = TokenMeter()
    logger = meter("vllm_config", 0)
    for number, step in enumerate(steps):
        if number % 2:
            logger.record(None, step, mm_cache_stats=None, engine_idx=0)
        else:
            logger.record("scheduler", step, None, 0, news="of a later version")
    told = [step for step in steps if step]
    assert meter.work.generated == sum(step.num_generation_tokens for step in told)
    assert meter.work.steps == sum(step.num_generation_tokens > 0 for step in told)
    assert meter.work.prompt == sum(step.prompt_token_stats.total for step in told)
    assert meter.work.prefilled == sum(step.prompt_token_stats.computed for step in told)


class PrometheusStatLogger:
    """Stands for vLLM's own by its name."""


@dataclass
class Manager:
    stat_loggers: list[object]


@dataclass
class Engine:
    logger_manager: Manager = field(default_factory=lambda: Manager([TokenMeter(), PrometheusStatLogger()]))


def test_only_the_prometheus_logger_goes() -> None:
    engine = Engine()
    leave_prometheus_out(engine)
    assert [type(logger) for logger in engine.logger_manager.stat_loggers] == [TokenMeter]
    leave_prometheus_out(object())
