"""The forecast of a run's cost, stored in `plan.json`. `plan` writes it, `label` takes its limit from it, `report` shows it.

Tokens are the generated tokens of rollouts and of sampled solutions. Hours are device hours, see `config.label.PlanConfig`.
Pure.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pipeline.core.json_records import record_of

VERSION = 1
_VERSION_KEY = "stepvalue_plan"
MARK = f'"{_VERSION_KEY}"'
"""A text near the beginning of every plan.json, by which the file is recognised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An expected value between two ends: a 95 % interval if a pilot measured it, else by assumption."""

    low: float
    expected: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
    """The work that the input requires.

    All counts are exact unless `chains_drawn`. In that case the policy samples chains first, and `chains`, `steps`, `prefixes`
    and tokens are extrapolated from the problems of the pilot. `estimated`: how tokens are estimated, where they cannot be
    counted.

    `prefixes` counts the distinct prefixes for which estimators may request rollouts. `too_long` more prefixes do not fit into
    the context of `context` tokens, both None if that is unknown; `unfit` names the first of them. `prompt_tokens` counts the
    tokens of every prompt once, `distinct_prompt_tokens` counts a beginning that several prompts share once.
    """

    rows: int
    used: int
    rejected: int
    rejects: Mapping[str, int]
    problems: int
    chains: int
    steps: int
    prefixes: int
    too_long: int | None
    prompt_tokens: int
    distinct_prompt_tokens: int
    context: int | None
    unfit: tuple[str, ...] = ()
    chains_drawn: bool = False
    estimated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """The result of the pilot, or the assumed values if not `measured`; `why_not` then says why there was no pilot.

    `completion_tokens`: tokens of one rollout. `success_rate`: mean over prefixes. `tokens_per_second`: speed of one worker,
    which uses `devices` devices; None if unknown. `start_seconds`: time until a worker has loaded the policy; `started_as` says
    where that comes from.
    """

    measured: bool
    why_not: str = ""
    problems: int = 0
    chains: int = 0
    prefixes: int = 0
    rollouts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    completion_tokens: Range
    success_rate: Range
    tokens_per_second: Range | None
    workers: int = 1
    devices: float = 1.0
    start_seconds: float = 0.0
    started_as: str = "in the pilot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The expected cost of a run with one estimator.

    `wall_hours` are for `gpus` devices. Money is None without a price; hours are None if the speed is unknown.
    """

    estimator: str
    rollouts: Range
    tokens: Range
    device_hours: Range | None
    wall_hours: Range | None
    money: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartCost:
    """The cost of one start of the run, in which its workers load the policy side by side. It is a part of each `Cost`."""

    device_hours: Range
    wall_hours: Range
    money: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """The limit at which `label` stops; None: no limit. Users may edit it in `plan.json`. Hours are counted once a worker is
    ready, because a run that is killed loads the policy again when it goes on."""

    tokens: int | None
    device_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A plan. `identity`: the identity of the run, see `runtime.state.identity`. `settings`: the settings that affect the cost
    but are not part of the identity.

    `cost` is the cost with the chosen estimator, `others` the cost with each other estimator and its settings as given.
    """

    made_at: str
    identity: Mapping[str, object]
    settings: Mapping[str, object]
    planned: PlannedWork
    pilot: Pilot
    gpus: int
    gpu_hour_price: float | None
    starting: StartCost
    cost: Cost
    others: tuple[Cost, ...]
    limit: Limit


def encode_forecast(forecast: Forecast) -> bytes:
    """The content of `plan.json`."""
    text = json.dumps({_VERSION_KEY: VERSION, **asdict(forecast)}, indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def decode_forecast(data: bytes) -> Forecast:
    """The inverse of `encode_forecast`, for a file that a person may have edited.

    Raises ValueError for invalid content; the message names the wrong part.
    """
    try:
        values = json.loads(data)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(values, dict) or values.pop(_VERSION_KEY, None) != VERSION:
        raise ValueError(f"it does not contain {_VERSION_KEY}: {VERSION}")
    forecast: Forecast = record_of(Forecast, values, "the plan")
    return forecast
