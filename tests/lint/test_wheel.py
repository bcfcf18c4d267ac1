"""The built wheel holds what the command needs outside the checkout, and a plug-in installs beside it; at night they label."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.conftest import ROOT, write_rows
from tests.plugin.installed import PROJECT, distribution, example

UV = [str(Path(sys.executable).parent / "uv")]
OFFLINE = ["--no-build-isolation", "--offline", "--quiet", "--python", sys.executable]


def stepvalue(site: Path, folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """The installed command, in another folder than the checkout's."""
    return subprocess.run(
        [str(site / "bin" / "stepvalue"), *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(site)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with this package and the plug-in of `tests/plugin` installed in it, from their wheels, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    for number, source in enumerate((ROOT, shutil.copytree(PROJECT, folder / "plugin"))):
        built = folder / str(number)
        subprocess.run(
            [*UV, "build", "--wheel", *OFFLINE, "--out-dir", str(built)], cwd=source, check=True, timeout=120
        )
    wheels = [str(wheel) for wheel in sorted(folder.glob("[01]/*.whl"))]
    words = [*UV, "pip", "install", "--no-deps", *OFFLINE, "--target", str(folder / "site"), *wheels]
    subprocess.run(words, check=True, timeout=120)
    return folder / "site"


def test_the_wheel_holds_every_file_of_the_package_and_of_conf(site: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "pipeline", "conf"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [
        name.replace("conf/", "pipeline/conf/", 1) if name.startswith("conf/") else name
        for name in listed.stdout.split()
    ]
    assert len(files) > 500
    assert [name for name in files if not (site / name).is_file()] == []


def test_the_installed_command_has_its_settings_and_those_of_the_plug_in(site: Path, tmp_path: Path) -> None:
    done = stepvalue(site, tmp_path, "label", "data=sample", "policy=echo", "estimator=halves", "--cfg", "job")
    assert done.returncode == 0, done.stderr
    assert "share: 0.5" in done.stdout


def test_an_installer_leaves_what_the_tests_of_plug_ins_write(site: Path, tmp_path: Path) -> None:
    distribution(tmp_path, "stepvalue-example", "1.0", example())
    left, written = (
        {(point.group, point.name, point.value) for each in distributions(name="stepvalue-example", path=[str(folder)])
         for point in each.entry_points}
        for folder in (site, tmp_path)
    )  # fmt: skip
    assert left == written
    assert len(left) == 11


@pytest.mark.nightly
@pytest.mark.ray
def test_the_installed_command_labels_the_sample(site: Path, tmp_path: Path) -> None:
    done = stepvalue(site, tmp_path, "label", "data=sample", "policy=oracle")
    assert done.returncode == 0, done.stderr
    assert "82 read = 82 used + 0 rejected" in done.stdout
    assert list((tmp_path / "runs").glob("*/labels/*.parquet"))
    (page,) = (tmp_path / "runs").glob("*/report.html")
    assert done.stdout.endswith(f"\nreport    {page.as_uri()}\n")
    assert b"82 used + 0 rejected" in page.read_bytes()


@pytest.mark.nightly
@pytest.mark.ray
@pytest.mark.timeout(600)  # three starts of Ray
def test_a_plug_in_works_in_the_workers_and_in_children(site: Path, tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"problem": f"Is {number} even?", "answer": "yes", "steps": ["Let me see.", f"{number} is even.", "Yes."]}
        for number in (2, 4)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    plug_ins = ["policy=echo", "estimator=halves", "grader=yes_no"]
    for words in (
        ["label", *plug_ins, "data.path=rows.jsonl", "run_dir=run"],
        ["check", "run_dir=run", "checks=[evens]"],
        ["search", "search=greedy", *plug_ins[::2], "scorer=brevity", "data.path=rows.jsonl", "run_dir=searched"],
    ):
        done = stepvalue(site, tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
