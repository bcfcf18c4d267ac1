"""`label` and `open_run`, the functions that Python users begin with."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pipeline.cli.label import LABEL
from pipeline.core.formatting import plain_lines
from pipeline.python.outline import rejects
from pipeline.python.overrides import named_settings, objects_of, settings_in, settings_with
from pipeline.python.process import done_for_call
from pipeline.python.rows import Rows, input_settings
from pipeline.python.run import Run
from pipeline.storage.location import storage_at

if TYPE_CHECKING:
    from pipeline.engines.base import Policy
    from pipeline.estimators.base import Estimator
    from pipeline.graders.base import Grader
    from pipeline.judges.base import Judge


@overload
def label(
    rows: Rows | str | Path | None = None,
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    estimator: "str | Mapping[str, Any] | Estimator | type[Estimator] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Run: ...
# For type checkers, which take `**{"sampling.temperature": 0.8}` for every named argument.
@overload
def label(rows: Rows | str | Path | None = None, **settings: Any) -> Run: ...
def label(
    rows: Rows | str | Path | None = None,
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    estimator: "str | Mapping[str, Any] | Estimator | type[Estimator] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Label the steps of reasoning chains: sample completions from every step prefix, and check their answers.

    Args:
        rows: Problems with known answers, and chains if there are any: the path of files, an `hf://` address, dicts, or a table
            of polars, pandas, PyArrow or the package `datasets`. Left out where `data` names a data set, as in `data="sample"`.
        policy: The model that completes the chains: its name on the Hugging Face Hub, its folder, or one of the policies
            `embedded`, `hf`, `openai` and `oracle`; a dict of settings of the policy, with its `kind` where it is another one
            (`{"kind": "oracle", "oracle": {"seed": 1}}`); or an object of yours. Default: the small embedded model.
        estimator: Its name; a dict of its settings, with its `name` (`{"name": "fixed", "rule": "threshold"}`); or an object of
            yours, such as `Halves(HalvesConfig(share=0.3))`.
        grader: Its name; a dict of its settings, with its `kind`; or an object of yours.
        run_dir: Where the run is stored. The same call with the same `run_dir` continues it. Default: a folder below `runs`.
        progress: Whether to show the progress. Rejected rows are printed in any case, to standard error.
        **settings: All other settings of the command `label`, by dotted key or as nested dicts:
            `**{"sampling.temperature": 0.8}` or `sampling={"temperature": 0.8}`. conf/README.md lists them. One that is given
            twice, with different values, is refused.

    The run is a process of its own, so it works inside a notebook's event loop, and several may run at a time on different
    directories. Ctrl-C, an interrupted cell or a kernel that restarts leave it resumable.

    An object of yours is an instance of `Policy`, `Estimator` or `Grader` (CONTRIBUTING.md, Extension points), or such a class
    with its default settings. It works on this machine only, and is sent to the processes of the run. `run.json` names its
    class with what is known of its code and state, as what cannot be repeated elsewhere. The same call with the same object
    continues the run; one of which that text differs is refused (pipeline/python/README.md, Objects of your own).

    Raises UsageError and InputError for what was asked wrongly, and the other errors of `pipeline.core.errors`, with the
    sentences of the command line. After Ctrl-C it raises RunInterrupted, a KeyboardInterrupt, which also ends a loop around the
    call, once the work is stored; a second Ctrl-C does not wait for that. Interrupted says that somebody else stopped the run.
    Committed work is always kept.
    """
    given = list(settings_in(settings))
    named = {"policy": policy, "estimator": estimator, "grader": grader}
    with input_settings(rows, given) as asked:
        objects = objects_of(named)
        asked += [*settings_with(objects, {}), *named_settings({**named, "run_dir": run_dir}), *given]
        summary = done_for_call(LABEL, asked, objects, progress=progress)
    if summary.totals.rejected:
        sys.stderr.write("".join(f"{plain_lines(line)}\n" for line in rejects(storage_at(summary.run_dir))))
    return Run(summary.run_dir, summary, objects)


def open_run(
    run_dir: str | Path,
    *,
    policy: "Policy | type[Policy] | None" = None,
    estimator: "Estimator | type[Estimator] | None" = None,
    grader: "Grader | type[Grader] | None" = None,
    judge: "Judge | type[Judge] | None" = None,
) -> Run:
    """A run directory that `label` has written, from Python or the command line, also an unfinished one.

    `policy`, `estimator`, `grader`: the objects that `label` was given, if it was; `relabel`, `regrade` and `audit` need them.
    `judge`: the object that `Run.judge` was given; `regrade` and `audit` need it.

    Raises UsageError where there is no run, and StoreError for a damaged one.
    """
    given = {"policy": policy, "estimator": estimator, "grader": grader, "judge": judge}
    return Run(run_dir, objects=objects_of(given))
