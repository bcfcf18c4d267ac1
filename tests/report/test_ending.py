"""The end of `label`, and the run directories that `report` accepts."""

from io import StringIO
from pathlib import Path

import pytest

from pipeline.__main__ import main
from pipeline.analysis.report.run import ending_lines
from pipeline.analysis.settings import ReportConfig
from pipeline.cli.compose import compose
from pipeline.cli.stored import REPORT
from pipeline.core.errors import StoreError
from pipeline.display.terminal import show, terminal
from pipeline.storage.local import LocalStorage
from tests.library import Library

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run_dir(library: Library, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return library.copy("mixed", tmp_path_factory.mktemp("ending"))


class Full(LocalStorage):
    """Is too full for a page."""

    def replace(self, name: str, data: bytes, *, private: bool = False) -> None:
        raise StoreError(f"{self.run_dir}/{name} cannot be written: no space left\x1b[31m")


def shown(storage: LocalStorage, *, page: bool = True, changed: bool = True) -> list[str]:
    output = terminal(file=StringIO(), width=80)
    show(ending_lines(storage, page=page, changed=changed), output)
    assert isinstance(output.file, StringIO)
    return output.file.getvalue().splitlines()


def test_a_run_ends_with_its_report_and_where_it_is(run_dir: Path) -> None:
    path = run_dir / "report.html"
    without = shown(LocalStorage(run_dir), page=False)
    assert [line.partition(" ")[0] for line in without] == ["policy", "values", "steps", "rule", "outcomes"]
    assert not path.exists()
    assert shown(LocalStorage(run_dir), changed=False) == [*without, f"report    {path.as_uri()}"]
    path.write_bytes(b"as it was")
    shown(LocalStorage(run_dir), changed=False)
    assert path.read_bytes() == b"as it was"
    shown(LocalStorage(run_dir))
    assert path.read_bytes() != b"as it was"


def test_a_page_that_cannot_be_written_is_one_line(run_dir: Path) -> None:
    *short, last = shown(Full(run_dir))
    assert short == shown(LocalStorage(run_dir), page=False)
    assert "the run is done" in last
    assert "no space left" in last
    assert "\x1b" not in last


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ("out", ("out",)),
        ("2024", ("2024",)),
        ("007", ("007",)),
        ("true", ("true",)),
        ("null", ("null",)),
        ("'my runs'", ("my runs",)),
        ("my runs (old) {1}", ("my runs (old) {1}",)),
        ("s3://bucket/a-b/c=d", ("s3://bucket/a-b/c=d",)),
        ("[a,s3://b/c]", ("a", "s3://b/c")),
        ("['a b','c,d']", ("a b", "c,d")),
    ],
)
def test_a_run_directory_is_any_text_or_two(given: str, taken: tuple[str, ...]) -> None:
    config = compose(REPORT, [f"run_dir={given}"]).settings()
    assert isinstance(config, ReportConfig)
    assert config.run_dir == taken


@pytest.mark.parametrize("given", ["''", "[]", "[a,b,c]", "[1,a]", "[a,'']"])
def test_what_is_no_run_directory_is_one_line(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", f"run_dir={given}"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("stepvalue: run_dir=")
    assert said.count("\n") == 1
