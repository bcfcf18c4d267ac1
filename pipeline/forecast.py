"""What a run is expected to cost, as `plan.json` holds it: written by `plan`, a limit for `label`, read by `report`.

Rollouts and tokens are those of rollouts and of sampled solutions together; hours are those of devices, see
`run_settings.PlanConfig`.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

VERSION = 1
_VERSION_KEY = "stepvalue_plan"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is expected, and between what it will lie, at 95 %."""

    low: float
    expected: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """What the input asks for: exact but where `chains_drawn`, for then the policy samples chains first, and `chains`, `steps`,
    `prefixes` and tokens are what the pilot's problems came to for all of them.

    `prefixes` are distinct, and those that estimators may ask rollouts for; `too_long` more do not fit the context of `context`
    tokens, the first of which `unfit` names. `prompt_tokens`: of all of them, each once; `distinct_prompt_tokens`: what several
    begin with, once.
    """

    rows: int
    used: int
    rejected: int
    rejects: Mapping[str, int]
    problems: int
    chains: int
    steps: int
    prefixes: int
    too_long: int
    prompt_tokens: int
    distinct_prompt_tokens: int
    context: int
    unfit: tuple[str, ...] = ()
    chains_drawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pilot:
    """What was labelled to see what it costs, and what it came to; or, where not `measured`, what is assumed.

    `completion_tokens` are those of one rollout, `success_rate` is the mean over prefixes, `tokens_per_second` are those of one
    worker, which takes so many `devices`; None: not known. `start_seconds`: until a worker has loaded the policy.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a run takes with one estimator. `wall_hours` are those on `gpus` devices; money is None where no price was given,
    hours where no speed is known."""

    estimator: str
    rollouts: Range
    tokens: Range
    device_hours: Range | None
    wall_hours: Range | None
    money: Range | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What `label` does not go beyond; None: no limit. May be edited in `plan.json`."""

    tokens: int | None
    device_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """A plan. `identity`: of the run it is for, see `run.state.identity`; `settings`: what is asked of it beyond that.

    `cost` is that of the settings; `others` that of the other estimators, with their own settings as they were given.
    """

    made_at: str
    identity: Mapping[str, object]
    settings: Mapping[str, object]
    planned: Planned
    pilot: Pilot
    gpus: int
    gpu_hour_price: float | None
    cost: Cost
    others: tuple[Cost, ...]
    limit: Limit


def encoded_forecast(forecast: Forecast) -> bytes:
    """The content of `plan.json`."""
    text = json.dumps({_VERSION_KEY: VERSION, **asdict(forecast)}, indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def decoded_forecast(data: bytes) -> Forecast:
    """The inverse. Raises ValueError, saying what is wrong, for anything else."""
    try:
        values = json.loads(data)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(values, dict) or values.pop(_VERSION_KEY, None) != VERSION:
        raise ValueError(f"it does not say {_VERSION_KEY}: {VERSION}")
    try:
        return Forecast(
            **{
                **values,
                "planned": Planned(**{**values["planned"], "unfit": tuple(values["planned"]["unfit"])}),
                "pilot": _record(Pilot, values["pilot"]),
                "cost": _record(Cost, values["cost"]),
                "others": tuple(_record(Cost, other) for other in values["others"]),
                "limit": Limit(**values["limit"]),
            }
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"a part of it is missing or unknown: {error}") from error


def _record(kind: type[Any], values: dict[str, Any]) -> Any:
    ranges = {part.name for part in fields(kind) if "Range" in str(part.type)}
    return kind(
        **{name: Range(**value) if name in ranges and value is not None else value for name, value in values.items()}
    )
