"""One panel in a terminal, lines in a log. Other output does not disturb either, and both fit."""

import io
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeline.core.progress import Load, Pace, Status, Verdicts
from pipeline.display import live
from pipeline.display.live import LiveView, panel

FULL = Status(
    stage="labelling", units=40, units_done=12, prefixes=9_000, prefixes_decided=8_000, rollouts=10_000,
    rollouts_expected=30_000, rollouts_before=2_000, tokens=900_000, workers=2, device_seconds=7_200.0, share_of_bound=0.712,
    verdicts=Verdicts(correct=4_500, incorrect=5_000, no_answer=300, ungraded=150, aborted=50, truncated=120),
    load=Load(running=128, waiting=70, grading=3),
)  # fmt: skip
PACE = Pace(recent=3_100.0, overall=2_900.0, seconds_left=3_725.0)

GOLDEN = """\
╭─ labelling 0:12:34 ──────────────────────────────────────────────────────╮
│ units    12 of 40 finished                                               │
│ prefixes 8,000 of 9,000 done, of the units begun                         │
│ rollouts 10,000 of 30,000 expected so far, 2,000 from earlier starts     │
│ speed    3,100 tokens/s, 2,900 since the start                           │
│ hardware 71 % of the hardware's upper bound                              │
│ requests 128 running, 70 waiting, 3 waiting for the grader               │
│ verdicts 45 % correct, 50 % incorrect, 3.0 % no answer, 1.5 % ungraded,  │
│          0.5 % aborted                                                   │
│ cut      1.2 % of rollouts, by sampling.max_tokens                       │
│ money    6.00 for 2.00 device hours                                      │
│ left     about 1:02:05                                                   │
│ done     █████████················· 33 %                                 │
╰──────────────────────────────────────────────────────────────────────────╯
"""


def printed(output: Console) -> str:
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue()


def console(*, width: int = 80, height: int = 24, terminal: bool = True) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        height=height,
        force_terminal=terminal,
        highlight=False,
        _environ={"TERM": "xterm"},
    )


def drawn(
    status: Status,
    pace: Pace = PACE,
    seconds: float = 754.0,
    *,
    price: float | None = 3.0,
    width: int = 80,
    policy: str = "",
) -> str:
    output = Console(file=io.StringIO(), width=width, _environ={})
    output.print(panel(status, pace, seconds, price, width=width, policy=policy))
    return printed(output)


def test_the_panel_reports_all_that_is_known() -> None:
    assert drawn(FULL) == GOLDEN


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_the_panel_is_narrower_than_the_terminal_and_fits_a_small_one(width: int) -> None:
    lines = drawn(FULL, width=width).splitlines()
    assert max(map(len, lines)) <= min(width - 1, 76)
    assert width < 80 or len(lines) <= 15
    assert "40" in "".join(lines)


def test_what_is_not_known_is_not_reported() -> None:
    (top, *_, bottom) = drawn(Status(stage="reading the input"), Pace(), 2.0, price=None).splitlines()
    assert "reading the input 0:00:02" in top
    assert "0" not in bottom


@given(st.text(max_size=300), st.integers(1, 120))
def test_no_stage_breaks_the_panel(stage: str, width: int) -> None:
    """A stage may hold what an engine said when it died."""
    shown = drawn(Status(stage=stage), Pace(), 2.0, price=None, width=width)
    assert all(character.isprintable() or character == "\n" for character in shown)


def test_a_panel_is_taken_away_at_the_end_and_what_others_print_stays_whole() -> None:
    output = console()
    with LiveView(output) as view:
        view(Status(stage="reading the input"))
        view(FULL)
        print("a line of somebody else")
    text = printed(output)
    assert "a line of somebody else\n" in text
    before, _, after = text.partition("a line of somebody else")
    assert "\x1b[2K" in before  # the panel is erased for the line, and drawn again below it
    assert "labelling" in after
    assert text.endswith(("\x1b[2K", "\x1b[?25h", "\x1b[1A\x1b[2K"))
    assert "\x1b[?25h" in after  # the cursor is back


def test_each_warning_is_printed_once_and_cannot_write_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveView(console(terminal=False)) as view:
        view(Status(stage="loading the policy", warnings=("one",)))
        view(Status(stage="loading the policy", warnings=("one",)))
        view(Status(stage="loading the policy", warnings=("one", "two\x1b[2K")))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "stepvalue: warning: one"
    assert second.startswith("stepvalue: warning: two")
    assert second.isprintable()


def lines_of_a_start(monkeypatch: pytest.MonkeyPatch, *shown: tuple[int, Status]) -> list[str]:
    """What a log gets of statuses at these seconds; each is shown again every 5 seconds until the next one."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(live, "time", clock)
    output = console(terminal=False)
    with LiveView(output) as view:
        for (begin, status), (end, _) in pairwise(shown):
            for seconds in range(begin, end, 5):
                clock.now = float(seconds)
                view(status)
    return printed(output).splitlines()


def test_a_log_of_a_long_start_gets_a_line_per_stage_and_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    stages = ["loading the policy", "waiting for resources", "downloading the model", "loading the policy", "labelling"]
    loads, waits, downloads, loads_again, labels = (Status(stage=stage) for stage in stages)
    end = (1000, labels)
    lines = lines_of_a_start(
        monkeypatch, (0, loads), (5, waits), (30, downloads), (170, loads_again), (235, replace(labels, workers=1)), end
    )
    assert lines[:7] == [
        "loading the policy 0:00:00",
        "waiting for resources 0:00:00",
        "downloading the model 0:00:00",
        "downloading the model 0:01:00",
        "downloading the model 0:02:00",
        "loading the policy 0:00:00",
        "loading the policy 0:01:00",
    ]
    assert lines[7:9] == ["labelling 0:00:00", "labelling 0:01:00"]


def test_a_log_of_a_short_start_has_one_line_per_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    loads, labels = Status(stage="loading the policy"), Status(stage="labelling", workers=1)
    assert lines_of_a_start(monkeypatch, (0, loads), (55, labels), (60, labels)) == [
        "loading the policy 0:00:00",
        "labelling 0:00:00",
    ]


def test_a_stage_that_begins_again_after_the_start_goes_on_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    labels, replaces = Status(stage="labelling", workers=1), Status(stage="replacing a worker")
    lines = lines_of_a_start(monkeypatch, (0, labels), (30, replaces), (40, labels), (45, labels))
    assert lines == ["labelling 0:00:00", "replacing a worker 0:00:00", "labelling 0:00:40"]


def test_a_log_gets_plain_lines() -> None:
    output = console(terminal=False)
    with LiveView(output) as view:
        view(Status(stage="reading the input"))
        view(Status(stage="reading the input"))
        view(Status(stage="loading [bold]it"))
        view(Status(stage="labelling", rollouts=3))
        view(Status(stage="labelling", rollouts=4))
    lines = printed(output).splitlines()
    assert [line.partition(" 0:00")[0] for line in lines] == [
        "reading the input",
        "loading [bold]it",
        "labelling",
        "labelling",
    ]
    assert "\x1b" not in printed(output)


LOADING = Status(stage="loading the policy", units=3)


def test_a_panel_names_what_is_loaded_with_a_bar_that_moves() -> None:
    first, second = (
        drawn(LOADING, Pace(), seconds, price=None, policy="Qwen/Qwen3-8B\x1b[2J") for seconds in (17.0, 18.0)
    )
    assert "loading the policy 0:00:17" in first
    assert "loading the policy 0:00:18" in second
    assert "Qwen/Qwen3-8B" in first
    assert "\x1b" not in first
    bars = [next(line for line in text.splitlines() if "█" in line) for text in (first, second)]
    assert bars[0] != bars[1]
    assert bars[0].count("█") == bars[1].count("█") > 1


@given(st.floats(0, 1e6), st.integers(1, 200))
def test_no_time_and_width_break_the_bar(seconds: float, width: int) -> None:
    assert max(map(len, drawn(LOADING, Pace(), seconds, price=None, width=width, policy="m").splitlines())) <= width


def test_a_log_names_what_is_loaded_until_a_worker_works() -> None:
    output = console(terminal=False)
    with LiveView(output, policy="Qwen/Qwen3-8B") as view:
        view(Status(stage="reading the input"))
        view(LOADING)
        view(replace(LOADING, stage="labelling", workers=1))
        view(replace(LOADING, stage="replacing a worker", device_seconds=3.0))
    named = [line.split(" 0:00")[0] for line in printed(output).splitlines() if "policy Qwen/Qwen3-8B" in line]
    assert named == ["loading the policy"]
