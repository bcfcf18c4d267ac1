"""The `report` command: the results of a run as a page and as a few lines. It takes unfinished runs and runs without chains
too."""

from collections.abc import Callable, Iterator
from pathlib import Path

from pipeline.analysis.browser.chains import build_browser
from pipeline.analysis.report.contents import build_page
from pipeline.analysis.report.request import request_text
from pipeline.analysis.report.run_lines import totals_lines
from pipeline.analysis.report.run_report import RunReport, read_run
from pipeline.analysis.searches.page import search_report
from pipeline.analysis.settings import ReportConfig
from pipeline.analysis.trees.report import tree_report
from pipeline.core.errors import StepvalueError, UsageError
from pipeline.core.tables import LABELS
from pipeline.display.document import GENERATOR
from pipeline.display.page import foot, html
from pipeline.storage.local import LocalStorage
from pipeline.storage.location import storage_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_foreign
from pipeline.storage.run_record import SEARCH, command_of, recorded_identity
from pipeline.storage.starts import REPORT
from pipeline.storage.storage import Storage
from pipeline.storage.stored_run import refuse_no_run


def report(config: ReportConfig) -> list[str]:
    """Write the page of one run and return the lines to print. Raises as `read_run` does, UsageError for an `out` that cannot
    be written or is not a report of ours, and StoreError for a page that cannot be written."""
    (run_dir,) = config.run_dir
    storage = storage_at(run_dir)
    out = None if config.out is None else Path(config.out).expanduser()
    if out:
        check_output_file("out", out)
        refuse_foreign("out", out, GENERATOR, "report")
    refuse_no_run(storage, "`label` or `search`")
    name, page, lines = (REPORT, *_made(storage, config)) if config.tree is None else _tree(storage, config)
    if out:
        with atomic_file(out) as file:
            file.write(page)
    else:
        storage.replace(name, page)
    link = out.resolve().as_uri() if out else _link(storage, name)
    return [*lines, f"report    {link}"]


def ending_lines(storage: Storage, *, page: bool, changed: bool) -> Iterator[str]:
    """The lines of the report of a run of `label` that has ended. With `page`, the page is written too, as by `page_at_end`. An
    error is a line and not raised, because the run is done."""
    try:
        read = read_run(storage, None)
        yield from read.short
        if page:
            config = ReportConfig(run_dir=storage.run_dir)
            yield f"report    {_kept_page(storage, lambda: page_data(storage, read, config), changed=changed)}"
    except Exception as error:  # noqa: BLE001  third-party code draws the charts; the run is done whatever it raises
        yield f"report    {_failed(error)}"


def page_at_end(storage: Storage, *, changed: bool) -> str:
    """Write the page of a run that has ended, unless it exists and nothing has `changed`. Returns its address. An error is
    returned and not raised, because the run is done."""
    try:
        config = ReportConfig(run_dir=storage.run_dir)
        return _kept_page(storage, lambda: _made(storage, config)[0], changed=changed)
    except Exception as error:  # noqa: BLE001  third-party code draws the charts; the run is done whatever it raises
        return _failed(error)


def _kept_page(storage: Storage, make: Callable[[], bytes], *, changed: bool) -> str:
    """The address of the page, which is made unless it exists and nothing has `changed`."""
    if changed or REPORT not in storage.names(""):
        storage.replace(REPORT, make())
    return _link(storage)


def _failed(error: Exception) -> str:
    reason = error if isinstance(error, StepvalueError) else f"{type(error).__name__}: {error}"
    return f"failed, but the run is done: {reason}"


def _link(storage: Storage, name: str = REPORT) -> str:
    """The address of a page in a run directory."""
    return (Path(storage.run_dir) / name).as_uri() if isinstance(storage, LocalStorage) else f"{storage.run_dir}/{name}"


def _made(storage: Storage, config: ReportConfig) -> tuple[bytes, list[str]]:
    """The page and the lines of a run of whichever command."""
    if command_of(recorded_identity(storage)) == SEARCH:
        return search_report(storage, config)
    read = read_run(storage, config.planned)
    return page_data(storage, read, config), [*totals_lines(read.found.totals), *read.short]


def _tree(storage: Storage, config: ReportConfig) -> tuple[str, bytes, list[str]]:
    """The name, the page and the lines of the tree of one problem."""
    if command_of(recorded_identity(storage)) == SEARCH:
        raise UsageError(
            f"tree={config.tree}: the report of a run of `search` has the tree of each problem; leave it out"
        )
    if config.planned is not None:
        raise UsageError(f"planned={config.planned}: the page of a tree has no plan; leave it out")
    return tree_report(storage, config)


def page_data(storage: Storage, read: RunReport, config: ReportConfig) -> bytes:
    """The page of a run that was read from `storage`, with at most `config.chains` of its chains. Raises StoreError for a
    damaged file."""
    rows = () if read.found.made_up else read.found.run.rows(LABELS, ["problem", "steps"])
    asked = next((chain for chain in rows if chain["steps"]), None)
    return html(
        build_page(
            read,
            request=request_text(read.found.run.settings, asked) if asked else "",
            inset=build_browser(storage, read.found.run, read.found.steps, chains=config.chains),
            foot=foot("report", {"run_dir": config.run_dir[0], "planned": config.planned}),
        )
    )
