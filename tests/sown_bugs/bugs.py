"""Does the suite bite? Bugs that others had or could have, each a patch of `pipeline/`, and the tests that must see them.

`bugs.toml` says of each patch of this folder what it does, in which package, and which modules of `make test` must turn red:
those that carry the promise at its lowest level. A bug is sown into a copy of the checkout, and these modules alone are run
there. A failed test is wanted; an error at import or collection says nothing of the tests, and neither does a limit of time.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.checkout import ROOT

FOLDER = Path(__file__).parent
SECONDS = 60
"""Processor time within which a bug must be seen."""
_PATIENCE = 10
"""The clock may take this many times as long, because others use the machine too."""
_SEEDS = "150"
"""Schedules of the fault simulator. Its usual number is for the right code; a bug may take a rare one."""
_FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
_SHOWN = 2_000
"""Characters of a report that are shown, from its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """`tests`: the modules that must see it."""

    name: str
    package: str
    is_: str
    tests: tuple[str, ...]

    @property
    def patch(self) -> Path:
        return FOLDER / f"{self.name}.patch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The first test that failed, or what is wrong. `seconds`: processor time."""

    test: str = ""
    fault: str = ""
    seconds: float = 0.0


def all_bugs() -> list[Bug]:
    """The bugs of the table, by name."""
    table = tomllib.loads((FOLDER / "bugs.toml").read_text("utf-8"))
    return [
        Bug(name=name, package=row["package"], is_=row["is"], tests=tuple(row["tests"]))
        for name, row in sorted(table.items())
    ]


def misfit(bug: Bug) -> str:
    """Why a bug cannot be sown, with the remedy; empty if it can."""
    if missing := [test for test in bug.tests if not (ROOT / test).is_file()]:
        return f"{bug.name} names {', '.join(missing)}, which is not there: name in bugs.toml what has the promise now"
    checked = _git("apply", "--check", str(bug.patch), folder=ROOT)
    if checked.returncode:
        return (
            f"{bug.patch.name} does not fit the code any more: sow the bug by hand and write it again with "
            f"`git diff -U1 pipeline > {bug.patch.relative_to(ROOT)}`\n{checked.stderr}"
        )
    return ""


@contextmanager
def checkout_copy() -> Iterator[Path]:
    """A copy of the checkout as it is, without what git ignores."""
    names = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=ROOT, check=True).stdout
    with tempfile.TemporaryDirectory(prefix="stepvalue-sown-") as folder:
        copy = Path(folder) / "checkout"
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, copy / name)
        yield copy


@contextmanager
def sown(bugs: Sequence[Bug], copy: Path) -> Iterator[None]:
    """The copy has these bugs."""
    patches = [str(bug.patch) for bug in bugs]
    _git("apply", *patches, folder=copy, check=True)
    try:
        yield
    finally:
        for patch in reversed(patches):
            _git("apply", "--reverse", patch, folder=copy, check=True)


def watched(bug: Bug, copy: Path) -> Watched:
    """Whether a test sees a bug."""
    if fault := misfit(bug):
        return Watched(fault=fault)
    began = _processor_time()
    late = f"{bug.name}: no test failed within {SECONDS} s"
    with sown([bug], copy):
        try:
            found = outcome_of(bug.tests, copy, "-x", seconds=SECONDS * _PATIENCE)
        except subprocess.TimeoutExpired:
            return Watched(fault=late, seconds=_processor_time() - began)
    seconds = _processor_time() - began
    failed = _FAILED.search(found.stdout)
    if seconds > SECONDS:
        return Watched(fault=late, seconds=seconds)
    if found.returncode == 1 and failed:
        return Watched(test=failed[1], seconds=seconds)
    if found.returncode == 0:
        return Watched(fault=f"{bug.name}: no test saw it. {bug.is_}", seconds=seconds)
    report = (found.stdout + found.stderr)[-_SHOWN:]
    return Watched(fault=f"{bug.name}: the tests could not be run\n{report}", seconds=seconds)


def outcome_of(
    modules: Sequence[str], copy: Path, *options: str, seconds: float | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run modules of tests in a copy. Raises TimeoutExpired after `seconds`."""
    command = [sys.executable, "-m", "pytest", "-n0", "-rf", "-p", "no:cacheprovider", *options, *modules]
    outside = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_") and key != "SEED"}
    return subprocess.run(
        command,
        cwd=copy,
        env={**outside, "PYTHONPATH": str(copy), "SEEDS": _SEEDS},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def complaints_without(bugs: Sequence[Bug], copy: Path) -> str:
    """What the modules of these bugs report in a copy without a bug; empty if all is green."""
    modules = sorted({test for bug in bugs for test in bug.tests if (copy / test).is_file()})
    found = outcome_of(modules, copy)
    return "" if found.returncode == 0 else (found.stdout + found.stderr)[-_SHOWN:]


def lint(bugs: Sequence[Bug], copy: Path) -> str:
    """What mypy and ruff say of `pipeline/` with all these bugs at once; empty if they see none of them."""
    said = ""
    with sown(bugs, copy):
        for command in (["mypy"], ["ruff", "check", "--no-cache", "--quiet"]):
            found = subprocess.run(
                [sys.executable, "-m", *command, "pipeline"], cwd=copy, capture_output=True, text=True, check=False
            )
            said += found.stdout + found.stderr if found.returncode else ""
    return said


def _processor_time() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _git(*arguments: str, folder: Path, check: bool = False) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=check)
