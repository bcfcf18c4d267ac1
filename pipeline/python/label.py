"""`label` and `open_run`, the functions that Python users begin with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pipeline.core.errors import UsageError
from pipeline.python.objects import is_object, objects_of, sent, settings_with
from pipeline.python.overrides import overrides_of, policy_overrides
from pipeline.python.process import label_elsewhere
from pipeline.python.rows import Rows, is_path, write_input
from pipeline.python.run import Run
from pipeline.python.task import Task
from pipeline.python.views import progress_view
from pipeline.storage.temporary import temporary_folder

if TYPE_CHECKING:
    from pipeline.engines.base import Policy
    from pipeline.estimators.base import Estimator
    from pipeline.graders.base import Grader

_GROUPS = ("estimator", "grader")
_ROWS = "stepvalue-rows-"


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
            `embedded`, `hf`, `openai` and `oracle`; a dict of settings of the policy; or an object of yours. Default: the small
            embedded model.
        estimator: Its name, a dict of its settings, or an object of yours, such as `Halves(HalvesConfig(share=0.3))`.
        grader: Its name, a dict of its settings, or an object of yours.
        run_dir: Where the run is stored. The same call with the same `run_dir` continues it. Default: a folder below `runs`.
        progress: Whether to show the progress.
        **settings: All other settings of the command `label`, by dotted key or as nested dicts:
            `**{"sampling.temperature": 0.8}` or `sampling={"temperature": 0.8}`. conf/README.md lists them.

    The run is a process of its own, so it works inside a notebook's event loop, and several may run at a time on different
    directories. Ctrl-C, an interrupted cell or a kernel that restarts leave it resumable.

    An object of yours is an instance of `Policy`, `Estimator` or `Grader` (CONTRIBUTING.md, Extension points), or such a class
    with its default settings. It works on this machine only, and is sent to the processes of the run. `run.json` names its
    class with a fingerprint of its code and state, as what cannot be repeated elsewhere. The same call with the same object
    continues the run; a changed object is refused.

    Raises UsageError and InputError for what was asked wrongly, Interrupted after Ctrl-C, and the other errors of
    `pipeline.core.errors`, with the sentences of the command line. Committed work is always kept.
    """
    if is_path(rows) and "data.path" in settings:
        raise UsageError("the input is given twice: as the first argument and as data.path")
    with temporary_folder(_ROWS) as folder:
        asked: dict[str, Any] = {}
        if rows is not None:
            asked["data.path"] = rows if is_path(rows) else write_input(rows, folder)
        objects = objects_of({"policy": policy, "estimator": estimator, "grader": grader})
        if not is_object(policy):
            asked |= policy_overrides(policy, policies())
        asked |= {name: value for name, value in zip(_GROUPS, (estimator, grader), strict=True) if value is not None}
        if run_dir is not None:
            asked["run_dir"] = run_dir
        overrides = overrides_of(settings_with(objects, {**asked, **settings}))
        with progress_view(shown=progress) as watch:
            summary = label_elsewhere(Task(overrides=overrides, objects=sent(objects)), watch)
    return Run(summary.run_dir, summary, objects)


def open_run(
    run_dir: str | Path,
    *,
    policy: "Policy | type[Policy] | None" = None,
    estimator: "Estimator | type[Estimator] | None" = None,
    grader: "Grader | type[Grader] | None" = None,
) -> Run:
    """A run directory that `label` has written, from Python or the command line, also an unfinished one.

    `policy`, `estimator`, `grader`: the objects that `label` was given, if it was; `relabel`, `regrade` and `audit` need them.

    Raises UsageError where there is no run, and StoreError for a damaged one.
    """
    return Run(run_dir, objects=objects_of({"policy": policy, "estimator": estimator, "grader": grader}))


def policies() -> list[str]:
    """The names of all policies, those of installed plug-ins too."""
    from pipeline.engines.registry import ENGINES

    return ENGINES.names()
