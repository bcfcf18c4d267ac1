"""The built wheel holds what the command needs outside the checkout, and a plug-in installs beside it."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.plugin.installed import PROJECT, distribution, example

UV = [str(Path(sys.executable).parent / "uv")]
OFFLINE = ["--no-build-isolation", "--offline", "--quiet", "--python", sys.executable]


def installed(folder: Path) -> Path:
    """A folder with this package and the plug-in of `tests/plugin` installed in it, from their wheels, and nothing else."""
    for number, source in enumerate((ROOT, shutil.copytree(PROJECT, folder / "plugin"))):
        built = folder / str(number)
        subprocess.run(
            [*UV, "build", "--wheel", *OFFLINE, "--out-dir", str(built)], cwd=source, check=True, timeout=120
        )
    wheels = [str(wheel) for wheel in sorted(folder.glob("[01]/*.whl"))]
    words = [*UV, "pip", "install", "--no-deps", *OFFLINE, "--target", str(folder / "site"), *wheels]
    subprocess.run(words, check=True, timeout=120)
    return folder / "site"


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
    return installed(tmp_path_factory.mktemp("wheel"))


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
    assert len(left) == 10
