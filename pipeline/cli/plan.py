"""The command `plan`."""

from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from pipeline.cli.command import Command
from pipeline.cli.label import check_ending, set_up_ray
from pipeline.config.label import LabelConfig
from pipeline.core.errors import Interrupted, UsageError
from pipeline.core.forecast import MARK, encode_forecast
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign, refuse_overwriting


def _plan(config: LabelConfig) -> int:
    if config.budget is not None:
        raise UsageError("budget= is a setting of `label`: `plan` writes the file for it")
    out = Path(config.plan.out)
    check_output_file("plan.out", out)
    refuse_foreign("plan.out", out, MARK, "plan")
    set_up_ray(config.cluster.address)
    from pipeline.analysis.plan.render import print_plan
    from pipeline.analysis.plan.run import plan
    from pipeline.analysis.report.terminal import LiveView
    from pipeline.data.rows import input_files
    from pipeline.runtime.actors import ray_workers
    from pipeline.runtime.stop import StopSignal

    refuse_overwriting({"plan.out": out}, input_files(config.data.path))
    console = Console(highlight=False)
    stop = StopSignal()
    stop.listen()
    try:
        with LiveView(console, config.plan.gpu_hour_price) as view:
            forecast = plan(config, ray_workers, view, stop, made_at=datetime.now(UTC).isoformat(timespec="seconds"))
    except Interrupted as error:
        raise Interrupted("interrupted; nothing was written: start the same command again") from error
    finally:
        stop.release()
    with atomic_file(out) as file:
        file.write(encode_forecast(forecast))
    print_plan(console, forecast, out)
    return 0


PLAN = Command(
    name="plan",
    summary="tell what `label` would do with the same settings and what that costs, from a small pilot; writes plan.json",
    examples="""\
plan: count what an input asks for, label a few of its problems to see what they cost, and tell rollouts, tokens, hours and
money.

  python -m pipeline plan data.path=my.jsonl policy.model=Qwen/Qwen2.5-Math-7B-Instruct plan.gpus=8 plan.gpu_hour_price=2.5
  python -m pipeline label data.path=my.jsonl policy.model=Qwen/Qwen2.5-Math-7B-Instruct run_dir=out budget=plan.json

It takes the settings of `label` and writes nothing but plan.json (plan.out). With plan.pilot=false, or where the policy cannot
be loaded here, the cost rests on plan.completion_tokens, plan.success_rate and plan.tokens_per_second.
""",
    schema=LabelConfig,
    check=check_ending,
    run=_plan,
)
