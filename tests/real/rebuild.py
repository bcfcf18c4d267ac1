"""`python -m tests.real.rebuild PROCESSBENCH RUN_DIR [--recorded FILE] [--policy NAME] [SETTING=VALUE ...]`: a run directory
from recorded rollouts.

PROCESSBENCH is a JSONL file in the layout `processbench` with an `answer` in each row. All its chains are labelled with the
rollouts in `--recorded`, those of a policy `--policy`. Without it, the chains about GSM8K are, with the rollouts that come with
this package. The run has the same chains, prefixes, verdicts and tokens as the recorded one, but other texts and token ids.
`relabel`, `report`, `agree`, `export` and `train` take it like any other. Settings are those of `label`; the default is the
recorded `estimator=fixed sampling.rollouts=8`. What is asked for beyond the recorded rollouts is drawn from them again.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pipeline.core.errors import StepvalueError
from pipeline.core.progress import Summary
from tests.conftest import write_rows
from tests.real.recorded import RecordedEngine, RecordedRollouts, read_recorded
from tests.runtime.in_process import label_in_process
from tests.settings import compose_label

POLICY = "recorded:Qwen2.5-Coder-0.5B-Instruct"
ROLLOUTS = 8
CHAINS = "gsm8k-"
"""How the ids of the recorded chains begin."""


def gsm8k_of(processbench: Path, written_to: Path) -> Path:
    """The rows about GSM8K, as a file."""
    rows = [json.loads(line) for line in processbench.read_text(encoding="utf-8").splitlines()]
    return write_rows(written_to, [row for row in rows if row["id"].startswith(CHAINS)])


def rebuild(
    data: Path,
    run_dir: Path,
    settings: Sequence[str] = (),
    *,
    recorded: Mapping[str, RecordedRollouts] | None = None,
    policy: str = POLICY,
) -> tuple[Summary, int]:
    """Label the chains of `data` with recorded rollouts. The second number: how many rollouts were drawn again.

    Raises UsageError for settings, and KeyError for a chain without recorded rollouts.
    """
    given = (
        "policy=oracle",
        "data=processbench",
        f"data.path={data}",
        f"run_dir={run_dir}",
        "estimator=fixed",
        f"sampling.rollouts={ROLLOUTS}",
        "run.show_chains=0",
    )
    names = {setting.partition("=")[0] for setting in settings}
    chosen = [setting for setting in given if setting.partition("=")[0] not in names]
    engine = RecordedEngine(recorded or read_recorded(), policy=policy)
    summary = label_in_process(compose_label([*chosen, *settings]), engine=engine)
    return summary, engine.repeated


def main() -> int:
    parser = argparse.ArgumentParser(prog="rebuild", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("processbench", type=Path, help="the chains, JSONL in the layout `processbench`")
    parser.add_argument("run_dir", type=Path, help="where the run goes; settings of `label` may follow")
    parser.add_argument(
        "--recorded", type=Path, help="rollouts of all these chains; else those that come along, for GSM8K"
    )
    parser.add_argument("--policy", default=POLICY, help="the name of the policy in the run")
    given, settings = parser.parse_known_args()
    data, run_dir = given.processbench, given.run_dir
    try:
        run_dir.parent.mkdir(parents=True, exist_ok=True)
        if given.recorded is None:
            data = gsm8k_of(data, run_dir.with_name(f"{run_dir.name}.input.jsonl"))
        recorded = None if given.recorded is None else read_recorded(given.recorded)
        summary, repeated = rebuild(data, run_dir, settings, recorded=recorded, policy=given.policy)
    except (StepvalueError, OSError) as error:
        print(f"rebuild: {error}", file=sys.stderr)
        return error.exit_code if isinstance(error, StepvalueError) else 2
    except KeyError as error:
        print(f"rebuild: {data} holds a chain that was not recorded (prefix {error})", file=sys.stderr)
        return 1
    print(f"{run_dir}: {summary.totals.chains:,} chains; {repeated} rollouts drawn again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
