"""Chains are left out by what the run says of their outcome and of their problem; a bound without effect is refused."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.config.chain_filter import ChainFilter
from pipeline.core.errors import InputError
from pipeline.export.settings import ExportConfig
from pipeline.train.settings import TrainConfig

shares = st.none() | st.floats(0, 1)
Configs = pytest.mark.parametrize("config", [ExportConfig, TrainConfig])


def bounds(low_p: float | None = None, low: float | None = None, high: float | None = None) -> ChainFilter:
    return ChainFilter(SimpleNamespace(min_p_outcome=low_p, min_root_value=low, max_root_value=high))


@given(shares, shares, shares, shares, shares)
def test_a_chain_stays_if_nothing_known_of_it_is_out_of_bounds(
    low_p: float | None, low: float | None, high: float | None, p_outcome: float | None, root: float | None
) -> None:
    reason = bounds(low_p, low, high).reason(p_outcome, root)
    unlikely = low_p is not None and p_outcome is not None and p_outcome < low_p - 1e-6
    hard = low is not None and root is not None and root < low - 1e-6
    easy = high is not None and root is not None and root > high + 1e-6
    if unlikely or hard or easy:
        assert reason is not None
    if reason is not None:
        assert {"low_p_outcome": low_p, "low_root_value": low, "high_root_value": high}[reason.kind] is not None
        assert reason.setting in reason.detail


@pytest.mark.parametrize(
    ("p_outcome", "root", "kind", "detail"),
    [
        (0.05, 0.5, "low_p_outcome", "p_outcome 0.05 is below min_p_outcome=0.1"),
        (0.5, 0.1, "low_root_value", "root_value 0.1 is below min_root_value=0.2"),
        (0.5, 0.95, "high_root_value", "root_value 0.95 is above max_root_value=0.9"),
    ],
)
def test_the_reason_names_the_number_and_the_setting(p_outcome: float, root: float, kind: str, detail: str) -> None:
    reason = bounds(0.1, 0.2, 0.9).reason(p_outcome, root)
    assert reason is not None
    assert (reason.kind, reason.detail) == (kind, detail)


def test_numbers_equal_to_a_bound_stay() -> None:
    assert 1 - 0.9 < 0.1
    assert bounds(0.1).reason(1 - 0.9, None) is None
    assert bounds(None, 0.3, 0.3).reason(None, 0.1 + 0.2) is None
    assert bounds(0.1).reason(0.0999, None) is not None


def test_unknown_numbers_leave_out_nothing_and_are_refused_if_all_are() -> None:
    some, none, other, empty = bounds(0.1), bounds(0.1), bounds(None, 0.1), bounds(0.1, 0.1)
    assert some.reason(None, 0.5) is None
    assert some.reason(0.9, 0.5) is None
    some.check_known("out")
    empty.check_known("out")
    none.reason(None, 0.5)
    with pytest.raises(
        InputError, match=r"out: min_p_outcome=0\.1 has no effect, because no chain of the run has a p_outcome"
    ):
        none.check_known("out")
    other.reason(0.5, None)
    with pytest.raises(
        InputError, match=r"min_root_value=0\.1 has no effect.*no graded rollout\): leave min_root_value out"
    ):
        other.check_known("out")


def test_only_the_columns_of_given_bounds_are_read() -> None:
    assert bounds().columns == ()
    assert bounds(0.0).columns == ("p_outcome", "n_rollouts", "root_n_rollouts")
    assert bounds(None, 0.1, 0.9).columns == ("root_value", "n_rollouts", "root_n_rollouts")


def test_a_chain_without_a_graded_rollout_stays() -> None:
    assert bounds(None, 0.5).reason(None, 0.1) is not None
    ungraded = bounds(None, 0.5)
    assert ungraded.reason(None, 0.1, graded=False) is None
    with pytest.raises(InputError, match=r"min_root_value=0\.5 has no effect"):
        ungraded.check_known("out")


def test_the_remedy_is_about_what_left_chains_out() -> None:
    assert bounds(0.1, 0.2, 0.9).remedy(["no_label", "high_root_value", "low_p_outcome"]) == (
        "lower min_p_outcome or raise max_root_value"
    )
    assert bounds(0.1).remedy(["no_label"]) == ""


@Configs
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"min_root_value": 0.6, "max_root_value": 0.5}, "min_root_value=0.6 is above max_root_value=0.5"),
        ({"min_p_outcome": 1.5}, "min_p_outcome=1.5 is out of range: it must be between 0 and 1"),
        ({"max_root_value": -0.1}, "max_root_value=-0.1 is out of range"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(
    config: Callable[..., object], settings: dict[str, float], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        config(**settings)
    config(min_root_value=0.5, max_root_value=0.5)


@pytest.mark.parametrize(
    "command", [["export", "run_dir=x", "format=trl", "out=y"], ["train", "run_dir=x", "model=m", "out=y"]]
)
def test_the_commands_refuse_them_in_a_line(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command, "min_root_value=0.6", "max_root_value=0.5"]) == 2
    line = capsys.readouterr().err
    assert "min_root_value=0.6 is above max_root_value=0.5" in line
    assert line.count("\n") == 1
