"""plan.json: encoding and decoding are inverse, and a file that is not a plan is reported."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.core.forecast import (
    Cost,
    Forecast,
    Limit,
    Pilot,
    PlannedWork,
    Range,
    StartCost,
    decode_forecast,
    encode_forecast,
)

numbers = st.floats(0, 1e12)
counts = st.integers(0, 10**9)
ranges = st.builds(Range, low=numbers, expected=numbers, high=numbers)
costs = st.builds(
    Cost,
    estimator=st.text(max_size=9),
    rollouts=ranges,
    tokens=ranges,
    device_hours=st.none() | ranges,
    wall_hours=st.none() | ranges,
    money=st.none() | ranges,
)
forecasts = st.builds(
    Forecast,
    made_at=st.text(max_size=20),
    identity=st.dictionaries(
        st.text(max_size=9), st.none() | st.text(max_size=9) | st.integers() | st.booleans(), max_size=3
    ),
    settings=st.dictionaries(st.text(max_size=9), st.none() | st.integers(), max_size=3),
    planned=st.builds(
        PlannedWork,
        rejects=st.dictionaries(st.text(max_size=9), counts, max_size=3),
        unfit=st.lists(st.text(max_size=20), max_size=3).map(tuple),
        **dict.fromkeys(
            ("rows", "used", "rejected", "problems", "chains", "steps", "prefixes", "prompt_tokens"), counts
        ),
        too_long=st.none() | counts,
        distinct_prompt_tokens=counts,
        context=st.none() | counts,
    ),
    pilot=st.builds(
        Pilot,
        measured=st.booleans(),
        completion_tokens=ranges,
        success_rate=ranges,
        tokens_per_second=st.none() | ranges,
    ),
    gpus=st.integers(1, 1000),
    gpu_hour_price=st.none() | numbers,
    starting=st.builds(StartCost, device_hours=ranges, wall_hours=ranges, money=st.none() | ranges),
    cost=costs,
    others=st.lists(costs, max_size=3).map(tuple),
    limit=st.builds(Limit, tokens=st.none() | counts, device_hours=st.none() | numbers),
)


@given(forecasts)
def test_a_plan_is_read_back_as_it_was(forecast: Forecast) -> None:
    assert decode_forecast(encode_forecast(forecast)) == forecast


@given(forecasts, st.integers(0, 30), st.binary(max_size=40))
def test_what_is_no_plan_is_a_value_error(forecast: Forecast, cut: int, noise: bytes) -> None:
    data = encode_forecast(forecast)
    for broken in (data[: cut * len(data) // 31], noise, b"[1]", b'{"stepvalue_plan": 2}'):
        with pytest.raises(ValueError, match=r"\S"):
            decode_forecast(broken)


EDITS: dict[str, object] = {
    "limit: tokens": "500",
    "limit: device_hours": "x",
    "limit: tokens ": -5,
    "limit: tokens  ": True,
    "limit: tokens   ": 1.5,
    "identity": 3,
    "cost": [],
    "cost: rollouts: low": "much",
    "others": {},
    "planned: unfit": [1],
    "gpus": None,
}


@settings(max_examples=5)
@given(forecasts)
@pytest.mark.parametrize("place", list(EDITS))
def test_what_a_person_has_spoilt_is_named(place: str, forecast: Forecast) -> None:
    values = json.loads(encode_forecast(forecast))
    *parts, last = place.strip().split(": ")
    inner = values
    for part in parts:
        inner = inner[part]
    inner[last] = EDITS[place]
    with pytest.raises(ValueError, match=place.strip().split(": ")[-1]):
        decode_forecast(json.dumps(values).encode())


def test_a_limit_is_a_number_and_no_other_part() -> None:
    with pytest.raises(ValueError, match="the plan lacks the part 'cost'"):
        decode_forecast(b'{"stepvalue_plan": 1}')
    with pytest.raises(ValueError, match="does not know"):
        decode_forecast(b'{"stepvalue_plan": 1, "extra": 1}')


@given(forecasts, st.sampled_from(["planned", "pilot", "cost", "limit", "gpus"]))
def test_a_part_that_is_missing_is_named(forecast: Forecast, part: str) -> None:
    values = json.loads(encode_forecast(replace(forecast, others=())))
    del values[part]
    with pytest.raises(ValueError, match=part):
        decode_forecast(json.dumps(values).encode())
