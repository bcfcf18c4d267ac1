"""A calibration as others use it: its maps, its file, and files that are none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.core.errors import InputError, UsageError
from pipeline.scorers.calibration import Calibration, MadeFrom, MapKind, PositionMap, decode, encode
from pipeline.scorers.calibration_file import MAX_BYTES, read_calibration, refuse_other_model

Change = Callable[[dict[str, Any]], object]


def made_from(**other: Any) -> MadeFrom:
    given: dict[str, Any] = {
        "model": "prm", "policy": "oracle", "run_dir": "fresh", "estimator": "fixed", "chains": 3, "problems": 2, "prefixes": 9,
        "rollouts": 72, "stepvalue": "1.0",
    }  # fmt: skip
    return MadeFrom(**given | other)


def line(first: int, last: int | None, *knots: tuple[float, float]) -> PositionMap:
    scores, values = zip(*knots, strict=True)
    low, high = (tuple(min(1.0, max(0.0, value + by)) for value in values) for by in (-0.1, 0.1))
    return PositionMap(first=first, last=last, prefixes=200, scores=scores, values=values, low=low, high=high)


def two_maps() -> Calibration:
    return Calibration(
        kind=MapKind.isotonic,
        confidence=0.95,
        made_from=made_from(),
        maps=(line(1, 2, (0, 0.1), (0.5, 0.2), (1, 0.6)), line(3, None, (0, 0), (1, 1))),
    )


def sorted_floats(size: int) -> st.SearchStrategy[list[float]]:
    return st.lists(st.floats(0, 1), min_size=size, max_size=size).map(sorted)


@st.composite
def position_maps(draw: st.DrawFn, first: int, last: int | None) -> PositionMap:
    inner = draw(st.lists(st.floats(0, 1, exclude_min=True, exclude_max=True), max_size=6, unique=True))
    scores = (0.0, *sorted(inner), 1.0)
    lines = sorted(zip(*(draw(sorted_floats(len(scores))) for _ in range(3)), strict=True))
    ordered = list(zip(*(sorted(each) for each in lines), strict=True))
    low, values, high = (tuple(sorted(each)) for each in ordered)
    return PositionMap(
        first=first, last=last, prefixes=draw(st.integers(0, 10**9)), scores=scores, values=values, low=low, high=high
    )


@st.composite
def calibrations(draw: st.DrawFn) -> Calibration:
    ends = sorted(draw(st.lists(st.integers(1, 40), max_size=4, unique=True)))
    firsts = [1, *(end + 1 for end in ends)]
    return Calibration(
        kind=draw(st.sampled_from(MapKind)),
        confidence=draw(st.floats(0.5, 0.999)),
        made_from=made_from(model=draw(st.text()), policy=draw(st.text(st.characters(codec="utf-8")))),
        maps=tuple(draw(position_maps(first, last)) for first, last in zip(firsts, [*ends, None], strict=True)),
    )


def test_scores_between_knots_are_on_the_line_of_their_step() -> None:
    applied = two_maps().apply([0.25, 0.75, 0.75, None, 0.1])
    assert applied == [pytest.approx(0.15), pytest.approx(0.4), pytest.approx(0.75), None, pytest.approx(0.1)]
    assert two_maps().apply([]) == []
    assert two_maps().apply([0, 1, 0, 1]) == [0.1, 0.6, 0, 1]


def test_an_estimate_has_the_interval_of_its_step() -> None:
    found = two_maps().estimate(2, 0.5)
    assert [found.value, found.low, found.high] == pytest.approx([0.2, 0.1, 0.3])
    assert two_maps().estimate(100, 0.5).value == 0.5
    with pytest.raises(ValueError, match="no step 0"):
        two_maps().estimate(0, 0.5)


@pytest.mark.parametrize("score", [-0.01, 1.01, float("nan"), float("inf")])
def test_what_is_no_probability_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        two_maps().apply([0.5, score])


@given(calibrations(), st.lists(st.none() | st.floats(0, 1), max_size=50))
def test_applied_scores_are_probabilities_within_their_intervals(made: Calibration, scores: list[float | None]) -> None:
    applied = made.apply(scores)
    assert len(applied) == len(scores)
    for step, (score, value) in enumerate(zip(scores, applied, strict=True), start=1):
        assert (score is None) == (value is None)
        if score is not None and value is not None:
            found = made.estimate(step, score)
            assert found.value == value
            assert found.low is not None
            assert found.high is not None
            assert 0 <= found.low <= value + 1e-12
            assert value <= found.high + 1e-12
            assert found.high <= 1


@given(calibrations(), st.floats(0, 1), st.floats(0, 1), st.integers(1, 60))
def test_a_higher_score_of_a_step_never_has_a_lower_v(made: Calibration, one: float, other: float, step: int) -> None:
    low, high = (made.apply([None] * (step - 1) + [score])[-1] for score in sorted((one, other)))
    assert low is not None
    assert high is not None
    assert low <= high


@given(calibrations())
def test_a_file_gives_the_calibration_back(made: Calibration) -> None:
    text = encode(made, {"figures": [1, None, "x"]})
    assert decode(text, "cal.json") == made
    assert decode(text.encode(), "cal.json") == made
    assert "P(correct final answer" in json.loads(text)["target"]


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), st.lists) | st.binary())
def test_anything_else_is_refused_with_a_remedy(found: object) -> None:
    text: str | bytes = found if isinstance(found, bytes) else json.dumps(found)
    with pytest.raises(InputError, match=r"cal\.json is no calibration: .*pipeline calibrate"):
        decode(text, "calibration=cal.json")


CHANGES: dict[str, Change] = {
    "format": lambda found: found.update(format="other"),
    "version": lambda found: found.update(version=2),
    "kind": lambda found: found.update(kind="spline"),
    "confidence": lambda found: found.update(confidence=1.5),
    "made_from": lambda found: found.pop("made_from"),
    "model": lambda found: found["made_from"].update(model=None),
    "chains": lambda found: found["made_from"].update(chains=True),
    "maps": lambda found: found.update(maps=[]),
    "does not follow": lambda found: (
        found["maps"].pop(0) and found["maps"].insert(0, {**found["maps"][0], "last": 1, "first": 1})
    ),
    "cover all steps": lambda found: found["maps"].pop(),
    "a map is for steps": lambda found: found["maps"][0].update(first=3, last=2),
    "rise from 0 to 1": lambda found: found["maps"][0]["scores"].__setitem__(1, 0),
    "is no number": lambda found: found["maps"][0]["scores"].__setitem__(1, "0.5"),
    "falls": lambda found: found["maps"][0]["values"].reverse(),
    "outside their intervals": lambda found: found["maps"][0]["high"].__setitem__(0, 0.05),
    "all their numbers": lambda found: found["maps"][0]["values"].pop(),
    "too large": lambda found: found["maps"][0]["values"].__setitem__(2, 10**400),
    "is not a list of numbers": lambda found: found["maps"][0].update(low=0.5),
    "is not an object": lambda found: found["maps"].__setitem__(0, 7),
    "prefixes is not a count": lambda found: found["maps"][0].update(prefixes=-1),
}


@pytest.mark.parametrize("reason", CHANGES)
def test_a_damaged_file_is_refused_by_what_is_wrong(reason: str) -> None:
    found = json.loads(encode(two_maps(), {}))
    CHANGES[reason](found)
    with pytest.raises(InputError, match=reason):
        decode(json.dumps(found), "cal.json")


@pytest.mark.parametrize("text", ["", "{", '{"a": NaN}', "[" * 100_000, b"\xff\xfe", "9" * 5000])
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(InputError, match="is no calibration"):
        decode(text, "cal.json")


def test_a_file_is_read_and_named(tmp_path: Path) -> None:
    path = tmp_path / "cal.json"
    path.write_text(encode(two_maps(), {}))
    assert read_calibration(path) == two_maps()
    with pytest.raises(InputError, match=r"calibration=.*missing\.json cannot be read: No such file"):
        read_calibration(tmp_path / "missing.json")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_calibration(tmp_path)
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match="larger than any calibration"):
        read_calibration(path)


def test_a_calibration_is_for_one_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = two_maps()
    for model in ("prm", "./prm", str(tmp_path / "prm")):
        refuse_other_model(made, model, "calibration=cal.json")
    with pytest.raises(UsageError, match=r"made for scores of prm, not of other: .*other_model=true"):
        refuse_other_model(made, "other", "calibration=cal.json")
    nameless = Calibration(kind=made.kind, confidence=0.95, made_from=made_from(model=""), maps=made.maps)
    with pytest.raises(UsageError, match="do not say which model"):
        refuse_other_model(nameless, "prm", "calibration=cal.json")


def test_it_says_in_a_shell_what_it_is() -> None:
    shown = repr(two_maps())
    assert "isotonic" in shown
    assert "not P(people call step k correct)" in shown
