"""`report` of a run of `search`: its page, and the lines in the terminal."""

import shlex
import time
from collections.abc import Iterator

from pipeline import __version__
from pipeline.analysis.report.contents import format_time
from pipeline.analysis.report.page import html
from pipeline.analysis.searches.browser.build import build_search_browser
from pipeline.analysis.searches.lines import search_lines
from pipeline.analysis.searches.page import search_page
from pipeline.analysis.searches.problems import searched_problems
from pipeline.analysis.searches.run_data import SearchRunData, load_search_data
from pipeline.analysis.settings import ReportConfig
from pipeline.core.errors import UsageError
from pipeline.core.formatting import format_unfinished
from pipeline.storage.storage import Storage
from pipeline.storage.stored_search import stored_search


def search_report(storage: Storage, config: ReportConfig) -> tuple[bytes, list[str]]:
    """The page of a run of `search`, with at most `config.chains` of its problems, and the lines to print. An unfinished run
    has those of its finished units.

    Raises UsageError for a plan, and for a run that cannot be read; StoreError for a damaged one.
    """
    if config.planned is not None:
        raise UsageError(f"planned={config.planned}: a run of `search` has no plan; leave it out")
    stored = stored_search(storage, partial=True)
    found = load_search_data(storage, stored)
    total = found.searches.height
    browser = build_search_browser(searched_problems(stored), total, config.chains) if total and config.chains else None
    command = shlex.join(["python", "-m", "pipeline", "report", f"run_dir={config.run_dir[0]}"])
    foot = (f"stepvalue {__version__}, {format_time(time.time())} UTC", command)
    return html(search_page(found, browser, foot)), list(_lines(found))


def _lines(found: SearchRunData) -> Iterator[str]:
    if found.unfinished:
        yield f"units     {format_unfinished(found.unfinished, found.units)}"
    if found.made_up:
        yield f"policy    {found.made_up}"
    if found.totals is not None and found.figures is not None:
        yield from search_lines(found.totals, found.figures)
