"""What a run is expected to cost, as `plan.json` holds it: written by `plan`, a limit for `label`, read by `report`.

Tokens are those of rollouts and of sampled solutions together; hours are those of devices, see
`run_settings.PlanConfig`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

VERSION = 1
_VERSION_KEY = "stepvalue_plan"
MARK = f'"{_VERSION_KEY}"'
"""What a plan.json says near its beginning, and no other file."""
_SHOWN_CHARS = 40
_WORDS: Mapping[Any, str] = {
    int: "a whole number of 0 or more",
    float: "a number of 0 or more",
    str: "a text",
    bool: "true or false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What is expected, and between what it will lie, at 95 %."""

    low: float
    expected: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedWork:
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
    """A plan. `identity`: of the run it is for, see `runtime.state.identity`; `settings`: what is asked of it beyond that.

    `cost` is that of the settings; `others` that of the other estimators, with their own settings as they were given.
    """

    made_at: str
    identity: Mapping[str, object]
    settings: Mapping[str, object]
    planned: PlannedWork
    pilot: Pilot
    gpus: int
    gpu_hour_price: float | None
    cost: Cost
    others: tuple[Cost, ...]
    limit: Limit


def encode_forecast(forecast: Forecast) -> bytes:
    """The content of `plan.json`."""
    text = json.dumps({_VERSION_KEY: VERSION, **asdict(forecast)}, indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "surrogatepass")


def decode_forecast(data: bytes) -> Forecast:
    """The inverse, of a file that a person may have edited. Raises ValueError, which names the wrong part, for all else."""
    try:
        values = json.loads(data)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(values, dict) or values.pop(_VERSION_KEY, None) != VERSION:
        raise ValueError(f"it does not say {_VERSION_KEY}: {VERSION}")
    forecast = _read(Forecast, values, "the plan")
    assert isinstance(forecast, Forecast)
    return forecast


def _read(kind: Any, value: Any, where: str) -> Any:
    """A value of JSON as what the annotation of a field says: a record, a tuple, a mapping by name, or a plain value."""
    if kind is object:
        return value
    if isinstance(kind, UnionType):
        (inner,) = (each for each in get_args(kind) if each is not NoneType)
        return None if value is None else _read(inner, value, where)
    if is_dataclass(kind):
        return _record(kind, value, where)
    if get_origin(kind) is tuple and isinstance(value, list):
        return tuple(_read(get_args(kind)[0], part, where) for part in value)
    if get_origin(kind) is Mapping and isinstance(value, dict):
        return {name: _read(get_args(kind)[1], part, f"{where}.{name}") for name, part in value.items()}
    if kind in (int, float) and _is_amount(value, kind):
        return value
    if kind in (str, bool) and isinstance(value, kind):
        return value
    wanted = _WORDS.get(kind, "a list or an object")
    raise ValueError(f"{where} is {json.dumps(value)[:_SHOWN_CHARS]}, and should be {wanted}")


def _record(kind: Any, value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise ValueError(f"{where} should be an object")
    hints = get_type_hints(kind)
    needed = {part.name for part in fields(kind) if part.default is MISSING}
    for name in sorted(value.keys() - hints.keys()):
        raise ValueError(f"{where} has a part {name!r} that this version does not know")
    for name in sorted(needed - value.keys()):
        raise ValueError(f"{where} lacks its part {name!r}")
    return kind(**{name: _read(hints[name], part, f"{where}: {name}") for name, part in value.items()})


def _is_amount(value: Any, kind: type) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return (whole or (kind is float and isinstance(value, float) and math.isfinite(value))) and value >= 0
