"""What is installed from wheels works with Ray: it labels the sample, and a plug-in serves each kind of run."""

from pathlib import Path

import pytest

from tests.conftest import write_rows
from tests.lint_wheel import installed, stepvalue

pytestmark = [pytest.mark.nightly, pytest.mark.ray]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("wheel"))


def test_the_installed_command_labels_the_sample(site: Path, tmp_path: Path) -> None:
    done = stepvalue(site, tmp_path, "label", "data=sample", "policy=oracle")
    assert done.returncode == 0, done.stderr
    assert "82 read = 82 used + 0 rejected" in done.stdout
    assert list((tmp_path / "runs").glob("*/labels/*.parquet"))
    (page,) = (tmp_path / "runs").glob("*/report.html")
    assert done.stdout.endswith(f"\nreport    {page.as_uri()}\n")
    assert b"82 used + 0 rejected" in page.read_bytes()


def test_a_plug_in_works_in_the_workers_and_in_children(site: Path, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": f"Is {number} even?", "answer": "yes", "steps": ["Let me see.", f"{number} is even.", "Yes."]}
        for number in (2, 4)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    plug_ins = ["policy=echo", "estimator=halves", "grader=yes_no"]
    for words in (
        ["label", *plug_ins, "data.path=rows.jsonl", "run_dir=run"],
        ["audit", "run_dir=run"],
        ["check", "run_dir=run", "checks=[evens]"],
        ["judge", "run_dir=run", "judge=numerals", "judge.name=mine"],
        ["search", "search=greedy", *plug_ins[::2], "scorer=brevity", "data.path=rows.jsonl", "run_dir=searched"],
    ):
        done = stepvalue(site, tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
