"""`label budget=plan.json`: a run does not cost more than its plan allows, and keeps what it has labelled."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from pipeline.analysis.status import StartState, run_status
from pipeline.core.errors import BudgetSpent, UsageError
from pipeline.core.forecast import Limit, decode_forecast
from pipeline.core.progress import Status, Summary
from pipeline.engines.oracle import OracleEngine
from pipeline.runtime.run_budget import Spending, Throttle, overspent_note
from pipeline.storage.local import LocalStorage
from pipeline.storage.starts import FOLDER
from pipeline.storage.stored_run import stored_run
from tests.plan.planning import edited, labelled, planned, problems
from tests.runtime.in_process import label_in_process
from tests.runtime.virtual_clock import on_a_virtual_clock
from tests.settings import compose_label

pytestmark = pytest.mark.slow

SLOWLY = [
    "policy=lab",
    "policy.lab.tokens_per_second=2000",
    "run.progress_seconds=0.05",
    "run.unit_problems=4",
    "run.flush_seconds=0.1",
]


def looked(limit: Limit, *statuses: Status, tokens: int = 0, hours: float = 0.0) -> int:
    """The number of statuses, one second apart, before a limit stops the run."""
    clock = iter(range(100))
    spending = Spending(limit, tokens, hours, lambda: next(clock))
    for number, status in enumerate(statuses):
        try:
            spending.check(status)
        except BudgetSpent:
            return number
    return len(statuses)


def shown(generated: int = 0, hours: float = 0.0, done: int = 0, rollouts: int = 0, expected: int = 0) -> Status:
    return Status(
        stage="labelling", units=2, units_done=done, generated=generated, device_seconds=3600 * hours,
        tokens=generated, rollouts=rollouts, rollouts_expected=expected,
    )  # fmt: skip


def test_a_run_ends_before_the_tokens_of_the_next_look_go_beyond_its_limit() -> None:
    statuses = [shown(100 * second) for second in range(1, 60)]
    assert looked(Limit(tokens=5050), *statuses) == 49
    assert looked(Limit(tokens=5450), *statuses, tokens=400) == 49
    assert looked(Limit(tokens=20_000), *statuses) == 59
    assert looked(Limit(tokens=None), *statuses) == 59


def test_a_run_is_ended_at_most_a_little_short_of_its_limit() -> None:
    assert looked(Limit(tokens=1000), shown(500), shown(940), shown(960)) == 2


def test_a_run_that_has_little_left_to_sample_is_not_ended_for_its_speed() -> None:
    statuses = [shown(100, rollouts=10, expected=40), shown(390, rollouts=39, expected=40)]
    half_shown = Status(stage="", units=2, generated=390, tokens=100, rollouts=10, rollouts_expected=40)
    assert looked(Limit(tokens=405), *statuses, half_shown) == 3
    assert looked(Limit(tokens=399), *statuses) == 1


def test_the_time_of_loading_does_not_count_as_time_of_sampling() -> None:
    loading = [shown() for _ in range(30)]
    assert looked(Limit(tokens=1040), *loading, shown(1000)) == 30


def test_hours_count_over_all_starts_and_a_finished_run_is_left_alone() -> None:
    assert looked(Limit(tokens=None, device_hours=1.5), shown(hours=1.0), shown(hours=1.6)) == 1
    assert looked(Limit(tokens=None, device_hours=1.5), shown(hours=1.0), hours=1.0) == 0
    assert looked(Limit(tokens=5), shown(10, done=2)) == 1


def test_a_run_that_was_done_too_soon_says_that_it_went_beyond_its_limit() -> None:
    assert overspent_note(Limit(tokens=100), 100) == ""
    assert overspent_note(Limit(tokens=None), 100) == ""
    assert overspent_note(Limit(tokens=99), 100).startswith("100 of 99 tokens")


def test_hours_that_damaged_starts_took_are_reported_to_be_uncounted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    planned(tmp_path, problems(2), "plan.pilot=false")
    labelled(tmp_path)
    (start,) = (tmp_path / "run" / FOLDER).iterdir()
    start.write_text("{")
    shutil.rmtree(tmp_path / "run" / "commits")
    labelled(tmp_path, edited(tmp_path, device_hours=None))
    assert capsys.readouterr().err == ""
    shutil.rmtree(tmp_path / "run" / "commits")
    labelled(tmp_path, edited(tmp_path, device_hours=100.0))
    assert f"{FOLDER}/{start.name} cannot be read, so the limit of 100 device hours does not" in capsys.readouterr().err


def test_more_looks_are_not_more_lines() -> None:
    passed: list[Status] = []
    seldom = Throttle(passed.append, seconds=1000)
    for status in (shown(1), shown(2), shown(3, done=1), shown(4, done=1)):
        seldom(status)
    assert [status.generated for status in passed] == [1, 3]


def test_a_run_within_its_plan_is_finished_and_holds_the_plan(tmp_path: Path) -> None:
    forecast = planned(tmp_path, problems(20))
    labelled(tmp_path, f"budget={tmp_path / 'plan.json'}")
    storage = LocalStorage(tmp_path / "run")
    assert not stored_run(storage).unfinished
    assert decode_forecast(storage.read("plan.json")) == forecast


def test_a_run_that_spends_its_limit_ends_and_goes_on_with_a_larger_one(tmp_path: Path) -> None:
    planned(tmp_path, problems(24), "plan.pilot=false", *SLOWLY)
    with pytest.raises(
        BudgetSpent, match=r"limit: [0-9,]+ of 3,000 tokens are spent. [0-9]+ of 6 units (is|are) unfinished"
    ):
        labelled(tmp_path, *SLOWLY, edited(tmp_path, tokens=3000))
    run = stored_run(LocalStorage(tmp_path / "run"))
    assert run.unfinished
    condition = run_status(LocalStorage(tmp_path / "run"), time.time()).condition
    assert condition.state is StartState.LIMITED
    assert "raise `limit` in the plan" in condition.why
    with pytest.raises(BudgetSpent, match="stops at its limit"):
        labelled(tmp_path, *SLOWLY, edited(tmp_path, tokens=1))
    summary = labelled(tmp_path, "policy=lab", "run.unit_problems=4", edited(tmp_path, tokens=10**9))
    assert summary.units == 6
    assert summary.now.rollouts < summary.totals.rollouts


def test_starts_are_in_the_plan_and_count_against_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def slowly(_: OracleEngine) -> None:
        await asyncio.sleep(300)

    data, run_dir = f"data.path={tmp_path / 'rows.jsonl'}", f"run_dir={tmp_path / 'run'}"
    settings = [*SLOWLY, "run.progress_seconds=1", "plan.gpu_hour_price=12", run_dir]

    def limited(**limit: float) -> Summary:
        config = compose_label([data, *settings, edited(tmp_path, **limit)])
        return label_in_process(config, run=on_a_virtual_clock)

    settings += ["plan.pilot=false", "plan.tokens_per_second=320000"]
    before = planned(tmp_path, problems(8), *settings)
    assert before.limit.device_hours is not None
    assert before.limit.device_hours < 300 / 3600
    monkeypatch.setattr(OracleEngine, "start", slowly)
    for share in (0.5, 1):  # 1.5 s and 3 s of the work's 4.6 s
        with pytest.raises(BudgetSpent, match="device hours of work are spent"):
            limited(device_hours=share * before.limit.device_hours)
    assert limited(device_hours=2 * before.limit.device_hours).units == 2
    after = planned(tmp_path, problems(8), *settings)
    assert after.pilot.started_as == "in the last start of this run"
    assert after.starting.device_hours.expected == pytest.approx(300 / 3600, rel=0.01)
    assert after.starting.money is not None
    assert after.starting.money.expected == pytest.approx(1, rel=0.01)


def test_the_plan_of_another_run_is_refused(tmp_path: Path) -> None:
    planned(tmp_path, problems(6), "plan.pilot=false")
    budget = f"budget={tmp_path / 'plan.json'}"
    with pytest.raises(UsageError, match=r"another run \(sampling\.temperature is 0\.5, in the plan 1\.0\)"):
        labelled(tmp_path, budget, "sampling.temperature=0.5")
    with pytest.raises(UsageError, match=r"sampling\.rollouts is 16, in the plan 8"):
        labelled(tmp_path, budget, "sampling.rollouts=16")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("content", [None, b"", b"{}", b'{"stepvalue_plan": 1}'])
def test_what_is_no_plan_is_reported(tmp_path: Path, content: bytes | None) -> None:
    planned(tmp_path, problems(2), "plan.pilot=false")
    if content is None:
        (tmp_path / "plan.json").unlink()
    else:
        (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(UsageError, match=r"plan\.json is not a plan: .+; make one with `plan`"):
        labelled(tmp_path, f"budget={tmp_path / 'plan.json'}")


@pytest.mark.parametrize("cap", [["limit.device_hours=1e-9"], ["limit.money=1e-9", "plan.gpu_hour_price=1"]])
def test_a_run_stops_at_hours_or_money_without_a_plan_and_goes_on_without_them(cap: list[str], tmp_path: Path) -> None:
    asked = [f"run_dir={tmp_path / 'run'}", "data=sample", "data.limit=4", "policy=oracle"]
    with pytest.raises(BudgetSpent, match=r"1e-09 device hours of work are spent.*limit\.device_hours or limit\.money"):
        label_in_process(compose_label([*asked, *cap]))
    assert label_in_process(compose_label(asked)).totals.chains == 4
    with pytest.raises(UsageError, match=r"limit\.money needs the price of a device"):
        compose_label([*asked, "limit.money=1"])
