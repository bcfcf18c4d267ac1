"""The `plan` command on the oracle policy: its counts equal those of `label`, and its ranges contain the real cost."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from pipeline.__main__ import main
from pipeline.analysis.plan.pilot import ATTACH_SECONDS
from pipeline.analysis.plan.render import plan_parts
from pipeline.analysis.plan.run import proposed_setting
from pipeline.core.errors import UsageError
from pipeline.core.forecast import Range
from pipeline.display.terminal import show
from pipeline.engines import hub
from tests import models
from tests.plan.planning import labelled, planned, problems
from tests.settings import compose_label

pytestmark = pytest.mark.slow

ESTIMATORS = ["pooled", "fixed", "first_success", "bisect"]
H100 = "policy.device.name=H100 SXM"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_is_planned_is_what_is_labelled_and_the_cost_lies_in_its_range(tmp_path: Path, estimator: str) -> None:
    settings = [f"estimator={estimator}", "policy.oracle.seed=3"]
    forecast = planned(tmp_path, problems(40, seed=3), *settings)
    totals = labelled(tmp_path, *settings).totals
    found = forecast.planned
    for name in ("rows", "used", "problems", "chains"):
        assert getattr(found, name) == getattr(totals, name)
    assert found.prefixes == totals.prefixes - totals.too_long
    assert forecast.pilot.measured
    assert forecast.pilot.problems == 16
    assert totals.rollouts in forecast.cost.rollouts
    assert totals.tokens in forecast.cost.tokens
    assert forecast.cost.estimator == estimator
    assert {other.estimator for other in forecast.others} == set(ESTIMATORS) - {estimator}


def test_what_another_estimator_is_said_to_take_is_what_it_takes(tmp_path: Path) -> None:
    others = {cost.estimator: cost for cost in planned(tmp_path, problems(40, seed=5), "estimator=fixed").others}
    for name in ("first_success", "bisect"):
        run_dir = f"run_dir={tmp_path / name}"
        assert labelled(tmp_path, f"estimator={name}", run_dir).totals.rollouts in others[name].rollouts


def test_chains_that_the_policy_draws_are_planned_from_the_pilots(tmp_path: Path) -> None:
    rows = [{"problem": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(60)]
    forecast = planned(tmp_path, rows)
    totals = labelled(tmp_path).totals
    assert forecast.planned.chains_drawn
    assert totals.tokens + totals.solution_tokens in forecast.cost.tokens
    with pytest.raises(UsageError, match=r"60 problems come without a chain.*plan\.pilot=false"):
        planned(tmp_path, rows, "plan.pilot=false")


def test_a_few_problems_without_a_chain_do_not_speak_for_the_others(tmp_path: Path) -> None:
    rows = [*problems(24, most_chains=20), *({"problem": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(5))]
    forecast = planned(tmp_path, rows, "estimator=fixed")
    totals = labelled(tmp_path, "estimator=fixed").totals
    assert forecast.pilot.chains < totals.chains / 2
    assert totals.rollouts in forecast.cost.rollouts
    assert totals.tokens + totals.solution_tokens in forecast.cost.tokens
    assert abs(forecast.planned.chains - totals.chains) <= 5 * 4
    assert forecast.planned.problems == totals.problems


def test_without_a_pilot_the_cost_rests_on_what_is_assumed(tmp_path: Path) -> None:
    settings = ["plan.pilot=false", "plan.completion_tokens=30", "plan.tokens_per_second=1000", "plan.gpu_hour_price=2"]
    forecast = planned(tmp_path, problems(40), "estimator=fixed", "plan.gpus=4", *settings)
    totals = labelled(tmp_path, "estimator=fixed").totals
    assert not forecast.pilot.measured
    assert forecast.cost.rollouts == Range(low=totals.rollouts, expected=totals.rollouts, high=totals.rollouts)
    assert totals.tokens in forecast.cost.tokens
    hours = forecast.cost.tokens.expected / 1000 / 3600 + 4 * ATTACH_SECONDS / 3600
    assert forecast.starting.device_hours.expected == pytest.approx(4 * ATTACH_SECONDS / 3600)
    assert forecast.cost.device_hours is not None
    assert forecast.cost.wall_hours is not None
    assert forecast.cost.money is not None
    assert forecast.cost.device_hours.expected == pytest.approx(hours)
    assert forecast.cost.wall_hours.expected == pytest.approx(hours / 4)
    assert forecast.cost.money.expected == pytest.approx(2 * hours)
    work = forecast.cost.device_hours.high - forecast.starting.device_hours.high
    assert forecast.limit.device_hours == pytest.approx(work)


@pytest.mark.parametrize("policy", ["hf", "openai"])
def test_without_the_tokenizer_tokens_are_estimated_from_characters(tmp_path: Path, policy: str) -> None:
    (folder := tmp_path / "model").mkdir()
    (folder / "config.json").write_text(json.dumps(models.QWEN_7B))
    (folder / "tokenizer_config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{")
    servers = [f"policy.tokenizer={folder}", "policy.openai.urls=[http://127.0.0.1:9]"] if policy == "openai" else []
    rows = problems(20)
    settings = [f"policy={policy}", f"policy.model={folder}", "estimator=fixed", *servers]
    forecast = planned(tmp_path, rows, *settings, "sampling.max_tokens=512", "plan.completion_tokens=512")
    why = f"the tokenizer {folder} cannot be loaded"
    assert forecast.pilot.why_not.startswith(why)
    assert forecast.planned.estimated.startswith(f"tokens are estimated from characters, 3 for a token: {why}")
    counted = planned(tmp_path, rows, "estimator=fixed", "plan.pilot=false", "sampling.max_tokens=512")  # in bytes
    assert not counted.planned.estimated
    assert forecast.planned.prefixes == counted.planned.prefixes
    assert forecast.cost.rollouts == counted.cost.rollouts
    for name in ("prompt_tokens", "distinct_prompt_tokens"):
        assert 2 < getattr(counted.planned, name) / getattr(forecast.planned, name) < 4
    shown = io.StringIO()
    show(plan_parts(forecast, Path("plan.json")), Console(file=shown, width=80, highlight=False))
    assert forecast.planned.estimated in shown.getvalue()
    assert (forecast.planned.context, forecast.planned.too_long) == (None, None)
    assert "95 of 100" not in shown.getvalue()
    assert ("by assumption, in the figures" in shown.getvalue()) is (forecast.cost.device_hours is not None)


def test_a_hub_that_is_away_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline: list[bool] = []

    def download(*_: object, **__: object) -> str:
        offline.append(hub.hub_is_off())
        raise OSError

    monkeypatch.setattr(hub, "_unreachable", lambda: "ConnectError")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    assert main(["plan", "data=sample", "policy.model=nobody/none", f"plan.out={tmp_path / 'plan.json'}"]) == 0
    assert offline
    assert all(offline)


def test_what_does_not_fit_the_context_is_named(tmp_path: Path) -> None:
    rows = [*problems(8), {"problem": "What is 1?", "answer": "1", "steps": ["y" * 1000, "The answer is 2."]}]
    rows.append({"problem": "What is 1? " + "z" * 900, "answer": "1", "steps": ["The answer is 1."]})
    settings = ["policy.max_model_len=900", "sampling.max_tokens=100"]
    found = planned(tmp_path, rows, *settings).planned
    totals = labelled(tmp_path, *settings).totals
    assert found.too_long == totals.too_long > 0
    assert found.rejected == totals.rejected == 1
    assert found.rejects == {"context": 1}
    assert any("the prefix of 1 steps" in where for where in found.unfit)


def test_a_budget_of_the_run_is_no_more_than_it_will_cost(tmp_path: Path) -> None:
    settings = ["estimator.run_budget=400", "estimator.budget_unit=rollouts"]
    forecast = planned(tmp_path, problems(60), *settings)
    assert labelled(tmp_path, *settings).totals.rollouts in forecast.cost.rollouts
    assert forecast.cost.rollouts.expected <= 440


def test_a_file_that_is_no_plan_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"schema": 3}')
    command = ["plan", "policy=oracle", "data=sample"]
    assert main([*command, f"plan.out={tmp_path / 'run.json'}"]) == 2
    assert "run.json exists and is not a plan: choose another file, or remove it" in capsys.readouterr().err
    assert main([*command, f"plan.out={tmp_path}"]) == 2
    assert main([*command, f"budget={tmp_path / 'plan.json'}"]) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_how_a_plan_is_reported_in_a_narrow_terminal(tmp_path: Path) -> None:
    settings = ["plan.pilot=false", "plan.tokens_per_second=1e3", "plan.gpu_hour_price=1.5"]
    forecast = planned(tmp_path, [*problems(40), {"problem": ""}], *settings)
    shown = io.StringIO()
    show(plan_parts(forecast, Path("plan.json")), Console(file=shown, width=80, highlight=False))
    assert shown.getvalue() == GOLDEN


@pytest.mark.parametrize(
    ("layers", "overrides", "proposed"),
    [
        (7, [H100], True),
        (28, [H100], False),
        (7, [], False),
        (7, [H100, "cluster.gpus_per_worker=1"], False),
        (7, [H100, "policy.tensor_parallel=2"], False),
    ],
)
def test_two_engines_on_a_gpu_are_proposed_for_small_models(
    tmp_path: Path, layers: int, overrides: list[str], proposed: bool
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({**models.QWEN_7B, "num_hidden_layers": layers}))
    proposal = proposed_setting(compose_label(["data=sample", f"policy.model={tmp_path}", *overrides]))
    assert ("cluster.gpus_per_worker=0.5 runs 2 engines on each GPU" in proposal) is proposed
    assert bool(proposal) is proposed


def test_a_proposal_is_printed_below_the_plan(tmp_path: Path) -> None:
    forecast = planned(tmp_path, problems(4), "plan.pilot=false", "plan.tokens_per_second=1e3")
    shown = io.StringIO()
    show(plan_parts(forecast, Path("plan.json"), "two engines"), Console(file=shown, width=200, highlight=False))
    assert shown.getvalue().endswith("faster    two engines\n")


GOLDEN = """\
rows      79 read = 78 used + 1 rejected
          1 missing_problem
work      40 problems, 78 chains, 389 steps, 351 distinct prefixes to measure
prompts   75,485 tokens, 20,509 if shared prefixes are counted once
pilot     none (plan.pilot=false): the figures below are assumptions
          success rate 0.50 (0.20–0.80), tokens per rollout 512.0 (256.0–1,024.0), tokens/s 1,000 (500–2,000) per worker
estimator         rollouts             tokens    device hours        wall time          money
pooled               2,770          1,418,094            0.40          0:23:43           0.59
               1,869–2,860  639,080–2,838,290       0.14–1.05  0:08:16–1:03:11      0.21–1.58
fixed                2,808          1,437,696            0.40          0:24:03           0.60
                            718,848–2,875,392       0.15–1.07  0:09:02–1:04:02      0.23–1.60
first_success          937            479,614            0.13          0:08:05           0.20
                 449–2,318  174,493–1,500,612      0.040–0.51  0:02:23–0:30:32     0.060–0.76
bisect                 258            132,209           0.038          0:02:17          0.057
                    24–766     11,074–480,249     0.0035–0.16  0:00:13–0:09:42    0.0052–0.24
starts alone                                           0.0014          0:00:05         0.0021
                                               0.00069–0.0028  0:00:02–0:00:10  0.0010–0.0042
          ranges rest on the assumptions alone; 1 device at 1.5 per hour
starts    5 s of each worker, by assumption, in the figures above. Each start of the run costs that; no limit counts it
plan      plan.json: `label budget=plan.json` with these settings stops at about 2,838,291 tokens or 1.05 device hours of work
"""
