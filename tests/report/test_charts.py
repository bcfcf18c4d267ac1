"""Charts of hostile texts: they stay apart, and one that ends the process which draws it costs that chart alone."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline import open_run
from pipeline.analysis.agree.human import NO_ERROR
from pipeline.analysis.report.charts import left_out
from pipeline.consensus.kept import KeptGroup
from pipeline.display import drawing
from pipeline.display.document import Mark, Page, Section, there
from pipeline.display.page import html
from tests.agree.scored import write_scores
from tests.agree.test_scores import agree, person, scored
from tests.conftest import write_rows
from tests.library import Library

pytestmark = pytest.mark.slow

IMAGE = "<img src=x onerror=\"document.title = 'owned'\"><script>document.title = 'owned'</script>"
NAMES = (
    "easy", "easy\x07", "easy\x08", "easy ", "nul\0", "a\u2028b", "\u2029", "\x85", "\ud800", "\u202ertl", "\ufffe", "\u0378",
    "\U0010ffff", "😀" * 40, "x" * 1_000_000, "x" * 1_000_001, IMAGE, "", '"]\\u0007', "name", "share", "#a10004", "Q-0.125B",
)  # fmt: skip
NUMBERS = (float("nan"), float("inf"), -float("inf"), 1e308, 10**400, -(10**400))
MISSING = "This chart is missing"


def test_any_text_and_number_can_be_drawn() -> None:
    named = left_out([KeptGroup(name=name, chains=3, left_out=1) for name in NAMES], "subset", "")
    assert named is not None
    assert left_out([KeptGroup(name="gsm8k", chains=3, left_out=0)], "subset", "") is None
    numbers = replace(named, marks=tuple(Mark(x=str(at), y=number) for at, number in enumerate(NUMBERS)))
    charts = Section(anchor="a", heading="", charts=there(named, numbers))
    page = html(Page(title="", kind="", verdict="`<b>`", sections=(charts,))).decode()
    assert "<code>&lt;b&gt;</code></p>" in page
    assert page.count("<svg ") == 2
    svg = page[page.index("<svg ") : page.index("</svg>")]
    bars_at = set(re.findall(r'<path d="(M0,[\d.]+)h[^"]*" fill="var\(--accent', svg))
    assert len(bars_at) == len(NAMES)  # none hides another
    assert {"easy", "easy�", "#a10004", "Q-0.125B"} <= set(re.findall(r">([^<]+)</text>", svg))
    assert not re.search("<(img|script)", svg)


def test_a_chart_that_ends_its_process_is_replaced_by_a_sentence(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [person(number, error, subset="easy\x07") for number, error in enumerate((1, NO_ERROR, NO_ERROR))]
    scores = write_scores(tmp_path / "s.parquet", [scored(row, 0.9, 0.4, 0.9) for row in rows])
    data, out, page = write_rows(tmp_path / "p.jsonl", rows), tmp_path / "o.json", tmp_path / "p.html"

    def counted() -> tuple[int, int]:
        assert agree(scores, data, f"page={page}", f"out={out}") == 0
        text = page.read_text()
        assert text.count("<details open>") == text.count(MISSING)
        return text.count("<svg "), text.count(MISSING)

    charts_of_page, missing = counted()
    found = out.read_bytes()
    assert (charts_of_page > 2, missing) == (True, 0)
    monkeypatch.setattr(drawing, "printable", str)
    assert counted() == (charts_of_page - 1, 1)
    assert out.read_bytes() == found
    # From Python, where no process starts.
    monkeypatch.setattr(drawing, "_MODULE", "pipeline.none")
    assert Path(open_run(library.copy("mixed", tmp_path)).report()).read_text().count(MISSING) > 2
    monkeypatch.setattr(drawing, "SECONDS", 0.0)
    monkeypatch.setattr(drawing, "start_module", None)
    assert counted() == (0, charts_of_page)
