"""The `report` command: what a run came to, as a page and in short; unfinished runs and those without any chain too."""

import shlex
import time
from pathlib import Path

from pipeline import __version__
from pipeline.analysis.report.browser.build import built
from pipeline.analysis.report.contents import moment, page_of
from pipeline.analysis.report.page import GENERATOR, Inset, html
from pipeline.analysis.report.reading import Read, link_in, read_run
from pipeline.analysis.report.terminal import totals_lines
from pipeline.analysis.settings import ReportConfig
from pipeline.storage.outputs import check_output_file, refuse_foreign, replaced_at_end
from pipeline.storage.place import storage_at
from pipeline.storage.starts import REPORT
from pipeline.storage.storage import Storage


def report(config: ReportConfig) -> list[str]:
    """Write the page of one run; the lines that tell of it. Raises as `read_run` does, UsageError for a file that is no
    report of ours, and StoreError for a page that cannot be written."""
    (run_dir,) = config.run_dir
    storage = storage_at(run_dir)
    out = None if config.out is None else Path(config.out).expanduser()
    if out:
        check_output_file("out", out)
        refuse_foreign("out", out, GENERATOR, "report")
    read = read_run(storage, config.planned)
    page = page_data(storage, read, config)
    if out:
        with replaced_at_end(out) as file:
            file.write(page)
    else:
        storage.replace(REPORT, page)
    link = out.resolve().as_uri() if out else link_in(storage)
    return [*totals_lines(read.found.totals), *read.short, f"report    {link}"]


def page_data(storage: Storage, read: Read, config: ReportConfig) -> bytes:
    """The page of a run that was read from there, with at most `config.chains` of its chains. Raises StoreError for a
    damaged file."""
    named = {"run_dir": config.run_dir[0], "planned": config.planned}
    words = [f"{key}={value}" for key, value in named.items() if value is not None]
    command = shlex.join(["python", "-m", "pipeline", "report", *words])
    foot = (f"stepvalue {__version__}, {moment(time.time())} UTC", command)
    return html(
        page_of(read.found, read.beside, banners=read.banners, inset=_chains(storage, read, config.chains), foot=foot)
    )


def _chains(storage: Storage, read: Read, most: int) -> Inset | None:
    browser = built(storage, read.run, chains=most)
    if not browser.shown:
        return None
    return Inset(html=browser.html, css=browser.css, js=browser.js, data=browser.data)
