"""What a notebook shows: one display that is drawn again, a last state, and colours that can be read."""

import colorsys
import sys
import types
from typing import Any

import pytest

from pipeline.analysis.chains import Chains, value_colour
from pipeline.core.errors import (
    BudgetSpent,
    EngineDied,
    InputError,
    PlaceError,
    PolicyError,
    RunConflict,
    RunInterrupted,
    StepvalueError,
    StoreError,
    UsageError,
)
from pipeline.core.progress import Status
from pipeline.python.views import DONE, FAILED, LIMITED, STOPPED, in_notebook, progress_view


class Kernel:
    """As much of IPython as a cell needs; what a cell shows is in `shown`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shown: list[str] = []
        self.displays = 0
        shell = type("ZMQInteractiveShell", (), {})()
        ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
        kernel = self

        class Handle:
            def update(self, html: str) -> None:
                kernel.shown.append(html)

        def show(html: str, *, display_id: bool) -> Handle:
            assert display_id
            kernel.displays += 1
            kernel.shown.append(html)
            return Handle()

        monkeypatch.setattr(ipython, "get_ipython", lambda: shell, raising=False)
        monkeypatch.setattr(display, "HTML", str, raising=False)
        monkeypatch.setattr(display, "display", show, raising=False)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(monkeypatch)


def status(rollouts: int, stage: str = "labelling") -> Status:
    return Status(stage=stage, units=2, units_done=rollouts // 50, rollouts=rollouts, rollouts_expected=100)


def test_a_cell_has_one_display_that_ends_with_how_it_ended(kernel: Kernel) -> None:
    assert in_notebook()
    with progress_view(shown=True) as watch:
        for rollouts in range(0, 101):
            watch(status(rollouts))
    assert kernel.displays == 1
    # The first, the new stage, the last; others are too close to each other.
    assert len(kernel.shown) == 3
    assert "value=" not in kernel.shown[0]
    assert 'max="100" value="0"' in kernel.shown[1]
    assert kernel.shown[-1].endswith(f'max="100" value="100"></progress> {DONE}, 2 of 2 units, 100 of 100 rollouts')


def test_an_interrupted_cell_says_that_it_goes_on(kernel: Kernel) -> None:
    def interrupted() -> None:
        with progress_view(shown=True) as watch:
            watch(status(30))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert kernel.shown[-1].endswith(f"{STOPPED}, 0 of 2 units, 30 of 100 rollouts")


@pytest.mark.parametrize(("error", "begun", "said"), [
    (RunInterrupted("x"), False, STOPPED), (RunInterrupted("x"), True, STOPPED),
    (EngineDied("x"), True, STOPPED), (StoreError("disk full"), True, STOPPED), (StepvalueError("killed"), True, STOPPED),
    (EngineDied("x"), False, FAILED), (StoreError("x"), False, FAILED),
    (UsageError("typo"), False, FAILED), (InputError("x"), False, FAILED), (RunConflict("x"), False, FAILED),
    (UsageError("of a plug-in"), True, FAILED), (PolicyError("x"), True, FAILED), (PlaceError("x"), True, FAILED),
    (BudgetSpent("x"), True, LIMITED), (ZeroDivisionError("x"), True, FAILED),
])  # fmt: skip
def test_a_bar_says_that_the_same_call_continues_a_run_only_where_it_does(
    error: BaseException, begun: bool, said: str, kernel: Kernel
) -> None:
    def ended() -> None:
        with progress_view(shown=True) as watch:
            watch(Status(stage="reading the input"))
            if begun:
                watch(status(30))
            raise error

    with pytest.raises(type(error)):
        ended()
    assert f"</progress> {said}" in kernel.shown[-1]


def test_what_is_shown_is_text(kernel: Kernel) -> None:
    with progress_view(shown=True) as watch:
        watch(status(1, stage="<img src=x onerror=alert(1)>"))
    assert "&lt;img" in kernel.shown[1]
    assert "<img" not in "".join(kernel.shown)


def test_nothing_is_shown_where_nothing_is_asked_for(kernel: Kernel) -> None:
    with progress_view(shown=False) as watch:
        watch(status(1))
    assert kernel.shown == []


def test_the_text_of_chains_is_no_output_of_its_own(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rich shows what it prints below the cell of a notebook, also what it is to print into a file."""
    monkeypatch.setattr("builtins.get_ipython", sys.modules["IPython"].get_ipython, raising=False)
    assert "1 + 1?" in str(Chains([CHAIN | FOR_TEXT], 1))
    assert kernel.displays == 0


CHAIN: dict[str, Any] = {
    "chain_id": "c", "source_id": None, "problem": "<b>1 + 1?</b>", "gold_answer": "2", "final_answer": "2",
    "outcome": True, "root_value": 0.5,
    "steps": ["<script>", "b"], "value": [0.2, None], "n_correct": [1, 0], "n_rollouts": [5, 0],
}  # fmt: skip


FOR_TEXT: dict[str, Any] = {
    "problem_id": "p", "label": [1, None], "low": [0.1, None], "high": [0.3, None], "origin": ["measured", "measured"],
    "root_low": 0.4, "root_high": 0.6, "root_n_correct": 1, "root_n_rollouts": 2,
}  # fmt: skip


def test_steps_can_be_read_in_light_and_dark_themes() -> None:
    html = Chains([CHAIN], 1)._repr_html_()
    assert "<script>" not in html
    assert "&lt;b&gt;1 + 1?" in html
    # Each colour of the background comes with that of its text, and elements with a colour of a theme's own are not used.
    assert html.count("background:") == html.count("color:#000") == 2
    assert "<code" not in html
    for hundredths in range(101):
        hue = float(value_colour(hundredths / 100).removeprefix("hsl(").split()[0])
        assert contrast_with_black(hue) >= 7


def contrast_with_black(hue: float) -> float:
    """The contrast of WCAG 2 of black text on this hue at 80 % saturation and the lightness of a step."""
    lightness = float(value_colour(0.0).split()[2].rstrip("%)")) / 100
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in colorsys.hls_to_rgb(hue / 360, lightness, 0.8)
    ]
    return (0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05) / 0.05
