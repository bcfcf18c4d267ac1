"""`solve`, `search` and `open_search`: what a scorer that steers a policy finds, for Python users."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import polars as pl

from pipeline.cli.search import SEARCH
from pipeline.core.errors import InputError, UsageError
from pipeline.core.formatting import printable
from pipeline.python.overrides import Setting, named_settings, objects_of, settings_in, settings_with
from pipeline.python.process import done_for_call
from pipeline.python.rows import Rows, input_settings
from pipeline.python.search_run import SearchRun
from pipeline.python.solved import Solved
from pipeline.storage.temporary import temporary_folder

if TYPE_CHECKING:
    from pipeline.engines.base import Policy
    from pipeline.graders.base import Grader
    from pipeline.scorers.base import Scorer
    from pipeline.searches.base import Search

Problem = str | Mapping[str, Any]
"""The text of a problem, or a row with columns `problem` and, if it is known, `answer`."""
_FOLDER = "stepvalue-solve-"


def search(
    rows: Rows | str | Path | None = None,
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    scorer: "str | Path | Mapping[str, Any] | Scorer | type[Scorer] | None" = None,
    search: "str | Mapping[str, Any] | Search | type[Search] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> SearchRun:
    """Solve problems with a policy that a scorer steers: sample steps, score them, and choose a chain of each problem.

    Args:
        rows: Problems, with or without known answers: the path of files, an `hf://` address, dicts, or a table, as for `label`.
            Left out where `data` names a data set, as in `data="sample"`.
        policy: The model that writes the steps, as for `label`: its name or folder, one of the policies, a dict of settings, or
            an object of yours. Default: the small embedded model.
        scorer: The model that scores them: its name or folder where `train` has written it; the name of a kind of scorer, such
            as `"oracle"`; a dict of settings with its `kind` (`{"kind": "qwen", "model": "org/name"}`); or an object of yours.
        search: The method: its name, such as `"beam"`; a dict of its settings, with its `method` (`{"method": "beam", "n": 16,
            "width": 4}`); or an object of yours. Default: `best_of_n`.
        grader: Its name; a dict of its settings, with its `kind`; or an object of yours.
        run_dir: Where the run is stored. The same call with the same `run_dir` continues it.
        progress: Whether to show the progress.
        **settings: All other settings of the command `search`, by dotted key or as nested dicts. conf/README.md lists them.

    The run is a process of its own, as that of `label`; Ctrl-C leaves it resumable.

    Raises as `label` does.
    """
    if run_dir is None:
        raise UsageError("run_dir is missing: give run_dir=FOLDER, where the search is stored; `solve` needs none")
    given = list(settings_in(settings))
    sections = {"policy": policy, "scorer": scorer, "search": search, "grader": grader}
    return _searched(rows, sections, run_dir, given, progress=progress)


def open_search(
    run_dir: str | Path,
    *,
    policy: "Policy | type[Policy] | None" = None,
    scorer: "Scorer | type[Scorer] | None" = None,
    search: "Search | type[Search] | None" = None,
    grader: "Grader | type[Grader] | None" = None,
) -> SearchRun:
    """A run directory that `search` has written, from Python or the command line, also an unfinished one.

    `policy`, `scorer`, `search`, `grader`: the objects that `search` was given, if it was; `audit` needs them.

    Raises UsageError where there is no such run, and StoreError for a damaged one.
    """
    given = {"policy": policy, "scorer": scorer, "search": search, "grader": grader}
    return SearchRun(run_dir, objects_of(given))


@overload
def solve(
    problem: Problem,
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    scorer: "str | Path | Mapping[str, Any] | Scorer | type[Scorer] | None" = None,
    search: "str | Mapping[str, Any] | Search | type[Search] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    accept: float | None = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Solved: ...
@overload
def solve(
    problem: Sequence[Problem],
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    scorer: "str | Path | Mapping[str, Any] | Scorer | type[Scorer] | None" = None,
    search: "str | Mapping[str, Any] | Search | type[Search] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    accept: float | None = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> list[Solved]: ...
def solve(
    problem: Problem | Sequence[Problem],
    *,
    policy: "str | Path | Mapping[str, Any] | Policy | type[Policy] | None" = None,
    scorer: "str | Path | Mapping[str, Any] | Scorer | type[Scorer] | None" = None,
    search: "str | Mapping[str, Any] | Search | type[Search] | None" = None,
    grader: "str | Mapping[str, Any] | Grader | type[Grader] | None" = None,
    accept: float | None = None,
    run_dir: str | Path | None = None,
    progress: bool = True,
    **settings: Any,
) -> Solved | list[Solved]:
    """Solve a problem, or several that share the models: `solve("What is 3 * 4?", policy="org/name", scorer="prm")`.

    Args:
        problem: The text of a problem; a dict with columns `problem` and, if it is known, `answer`; or a list of these, for
            which a list comes back, in their order. A dict may have a chain too (`steps`), with which `regenerate` begins.
        policy: As for `search`.
        scorer: As for `search`.
        search: As for `search`.
        grader: As for `search`.
        accept: The confidence that is enough: no more is sampled when a chain reaches it, `trusted` says whether one does, and
            `sure` of each step whether its score does. It is a probability where `calibration` names a file of `calibrate`.
        run_dir: Where the run is stored, for `open_search`. Default: it is not kept.
        progress: Whether to show the progress.
        **settings: All other settings of the command `search`.

    The models are loaded for each call, which takes longer than one problem: give problems that are there in one call.

    Raises InputError for a problem that cannot be used, and otherwise as `search` does.
    """
    alone = isinstance(problem, str | Mapping)
    problems = [problem] if alone else list(problem)
    rows = [_row(number, each) for number, each in enumerate(problems, start=1)]
    given = list(settings_in({**({} if accept is None else {"accept": accept}), **settings}))
    given = [replace(each, key="search.accept") if each.key == "accept" else each for each in given]
    if run_dir is None and any(each.key == "cluster.address" for each in given):
        raise UsageError("run_dir is missing: the nodes of a cluster need a folder that all of them reach")
    sections = {"policy": policy, "scorer": scorer, "search": search, "grader": grader}
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(_FOLDER)) / "run" if run_dir is None else run_dir
        found = _of_rows(rows, _searched(rows, sections, folder, given, progress=progress))
    own = [each.get("id") if isinstance(each, Mapping) else None for each in problems]
    solved = [replace(each, source_id=None if id_ is None else str(id_)) for each, id_ in zip(found, own, strict=True)]
    return solved[0] if alone else solved


def _searched(
    rows: Rows | str | Path | None,
    sections: Mapping[str, Any],
    run_dir: str | Path,
    given: Sequence[Setting],
    *,
    progress: bool,
) -> SearchRun:
    """The run of a call. `sections`: its arguments that are a name, settings or an object."""
    with input_settings(rows, given) as asked:
        objects = objects_of(sections)
        asked += [*settings_with(objects, {}), *named_settings({**sections, "run_dir": run_dir}), *given]
        done_for_call(SEARCH, asked, objects, progress=progress)
    return SearchRun(run_dir, objects)


def _row(number: int, problem: object) -> dict[str, Any]:
    """A problem as a row of the input, whose `id` is its number. Raises InputError."""
    if isinstance(problem, str):
        return {"id": str(number), "problem": problem}
    if isinstance(problem, Mapping):
        return {**problem, "id": str(number)}
    raise InputError(
        f"problem {number} is of type {type(problem).__name__}: give its text, or a dict with a column `problem`"
    )


def _of_rows(rows: Sequence[Mapping[str, Any]], run: SearchRun) -> list[Solved]:
    """What was found for each row, which its number names. Of rows with equal texts, one is searched. Raises InputError for a
    row without a search."""
    solved = run.solved()
    by_id = {each.source_id: each for each in solved}
    by_text = {each.problem.strip(): each for each in solved}
    found = []
    for row in rows:
        each = by_id.get(row["id"]) or by_text.get(str(row["problem"]).strip())
        if each is None:
            why = run.rejects().filter(pl.col("line") == int(row["id"]))["detail"].to_list()
            raise InputError(f"problem {row['id']} cannot be used: {printable(' '.join(why)) or 'it has no result'}")
        found.append(each)
    return found
