"""The judges by name: built-in ones and those of installed plug-ins. To add a built-in judge, add a line to `JUDGES`."""

from typing import TYPE_CHECKING

from pipeline.config.judge import JudgeConfig
from pipeline.config.recorded_settings import complete_settings
from pipeline.core.registry import Registry

if TYPE_CHECKING:
    from pipeline.engines.base import Engine, Surroundings
    from pipeline.judges.base import Judge, JudgingEngine

JUDGES: "Registry[type[Judge]]" = Registry(
    "judges",
    noun="judge",
    setting="judge",
    ours={
        "model": "pipeline.judges.model:ModelJudge pipeline.judges.settings:ModelJudgeConfig",
        "oracle": "pipeline.judges.oracle:OracleJudge pipeline.judges.settings:OracleJudgeConfig",
    },
    needs=("Config", "engine", "read", "sampling", "identity"),
    answers="pipeline.judges.base:ANSWERS",
)


def judge_for(settings: JudgeConfig) -> "Judge":
    """The judge that the settings name. Raises UsageError where no judge of that name is installed."""
    usable: Judge = JUDGES.create(settings.kind, complete_settings(settings, JUDGES))
    return usable


def open_judge(settings: JudgeConfig, text_engine: "Engine | None", around: "Surroundings") -> "JudgingEngine":
    """A new engine of the judge, not started. Raises UsageError as `judge_for` does.

    `text_engine`: the engine of the policy that writes, not started; None for a judge that writes with none."""
    made = judge_for(settings).engine(text_engine, around)
    engine: JudgingEngine = JUDGES.guard(settings.kind, made)
    return engine
