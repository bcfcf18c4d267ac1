"""The `grade` command as a user starts it, with files and pipes, damaged input and interruption."""

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipeline.__main__ import main
from pipeline.cli.grade_lines import grade_lines
from pipeline.config.label import GradeConfig
from tests.conftest import ROOT, write_rows

pytestmark = pytest.mark.slow

CASES: list[dict[str, Any]] = [
    {"gold": "1/2", "prediction": "So it is \\boxed{0.5}.", "id": 7},
    {"gold": "\\sin 2x", "prediction": "2\\sin x\\cos x", "extracts": False},
    {"gold": ["2", "-2"], "prediction": -3, "extracts": False},
    {"gold": 5, "prediction": None},
    {"gold": "5", "prediction": "5 \ud800\0\u2028 #### 5"},
]
VERDICTS = ["correct", "correct", "incorrect", "no_answer", "correct"]
STALLS = "\\sum_{i=1}^{\\infty} \\frac{\\sin i}{i^5}"

Printed = pytest.CaptureFixture[str]


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().decode("ascii").splitlines()]


def refused(capsys: Printed, *arguments: str) -> str:
    assert main(["grade", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1
    return shown.err.removeprefix("stepvalue: ")


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "cases.jsonl", CASES)


def test_a_file_comes_back_in_order_with_verdicts(cases: Path, tmp_path: Path, capsys: Printed) -> None:
    output = tmp_path / "new" / "verdicts.jsonl"
    assert main(["grade", f"input={cases}", f"output={output}", "grader.deadline_seconds=20"]) == 0
    found = lines(output)
    assert [line.pop("verdict") for line in found] == VERDICTS
    assert [line.pop("answer") for line in found] == ["0.5", "2\\sin x\\cos x", "-3", "", "5"]
    assert all(line.pop("ms") >= 0 for line in found)
    assert found == CASES
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("5 lines in ")
    assert shown.err.endswith(" s: 3 correct, 1 incorrect, 1 no_answer\n")
    assert [path.name for path in output.parent.iterdir()] == ["verdicts.jsonl"]


@pytest.mark.parametrize("suffix", [".gz", ".zst"])
def test_packed_input_is_unpacked_and_a_damaged_one_named(
    light: None, suffix: str, cases: Path, capsys: Printed
) -> None:
    content = cases.read_bytes()
    packed = cases.with_name(f"cases.jsonl{suffix}")
    packed.write_bytes(gzip.compress(content) if suffix == ".gz" else pa.Codec("zstd").compress(content, asbytes=True))
    output = cases.with_name("verdicts.jsonl")
    assert main(["grade", f"input={packed}", f"output={output}"]) == 0
    assert len(lines(output)) == len(CASES)
    output.unlink()
    capsys.readouterr()
    packed.write_bytes(packed.read_bytes()[:-12])
    assert f"input: {packed} cannot be read" in refused(capsys, f"input={packed}", f"output={output}")
    assert not output.exists()


def test_bad_lines_come_back_with_an_error_and_the_rest_goes_on(tmp_path: Path, capsys: Printed) -> None:
    bad = [b"{", b"[1]", b'{"gold": 5}', b'{"gold": "\xff"}', b"", b'{"gold": "\\\\frac{1}{", "prediction": 2}']
    good = json.dumps(CASES[0]).encode()
    (tmp_path / "cases.jsonl").write_bytes(b"\n".join([good, *bad, good]))
    output = tmp_path / "verdicts.jsonl"
    assert main(["grade", f"input={tmp_path / 'cases.jsonl'}", f"output={output}"]) == 2
    found = lines(output)
    assert [line["verdict"] for line in found] == ["correct", None, None, None, None, "unparseable", "correct"]
    assert [line["error"].split(":")[0] for line in found[1:6]] == [f"line {number}" for number in (2, 3, 4, 5, 7)]
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("2 correct, 0 incorrect, 0 no_answer, 1 unparseable, 4 not usable")
    assert second.startswith("stepvalue: 5 of 7 lines have an error, the first: line 2: ")


def test_an_empty_input_is_an_empty_output(tmp_path: Path) -> None:
    (tmp_path / "cases.jsonl").write_bytes(b"\n \n")
    assert main(["grade", f"input={tmp_path / 'cases.jsonl'}", f"output={tmp_path / 'verdicts.jsonl'}"]) == 0
    assert (tmp_path / "verdicts.jsonl").read_bytes() == b""


def test_what_cannot_be_is_reported_before_anything_is_written(cases: Path, tmp_path: Path, capsys: Printed) -> None:
    before = cases.read_bytes()
    (tmp_path / "link.jsonl").symlink_to(cases)
    assert "there is no such file" in refused(capsys, f"input={tmp_path / 'absent'}", f"output={tmp_path / 'a' / 'b'}")
    assert "is a folder: name one file" in refused(capsys, f"input={tmp_path}")
    assert "is a folder: name a file in it" in refused(capsys, f"input={cases}", f"output={tmp_path}")
    assert "is the input" in refused(capsys, f"input={cases}", f"output={cases}")
    assert "is the input" in refused(capsys, f"input={cases}", f"output={tmp_path / 'link.jsonl'}")
    assert "is the input" in refused(capsys, f"input={tmp_path / 'link.jsonl'}", f"output={cases}")
    assert "without .gz" in refused(capsys, f"input={cases}", f"output={tmp_path / 'verdicts.jsonl.gz'}")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cases.jsonl", "link.jsonl"]
    assert cases.read_bytes() == before


def test_a_place_that_cannot_be_written_is_reported(cases: Path, capsys: Printed) -> None:
    assert main(["grade", f"input={cases}", f"output={cases / 'below'}"]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_device_is_written_to_and_not_replaced(light: None, cases: Path, capsys: Printed) -> None:
    assert main(["grade", f"input={cases}", "output=/dev/null"]) == 0
    assert Path("/dev/null").is_char_device()
    assert main(["grade", f"input={cases}", "output=/dev/full"]) == 1
    assert "/dev/full cannot be written: No space left on device" in capsys.readouterr().err


def test_several_children_work_at_once_and_the_order_stays(light: None, tmp_path: Path) -> None:
    many: list[dict[str, object]] = [
        {"gold": f"{n}", "prediction": f"{n}\\sin^2 x+{n}\\cos^2 x" if n % 3 else "x", "extracts": False}
        for n in range(2, 60)
    ]
    cases = [*many, {"gold": "5", "prediction": STALLS, "extracts": False}, *many]
    write_rows(tmp_path / "cases.jsonl", cases)
    config = GradeConfig(input=str(tmp_path / "cases.jsonl"), output=str(tmp_path / "verdicts.jsonl"))
    config.grader.processes = 2
    assert grade_lines(config) == 0
    found = lines(tmp_path / "verdicts.jsonl")
    assert [line["prediction"] for line in found] == [case["prediction"] for case in cases]
    assert found[len(many)]["verdict"] == "timeout"
    assert [line["verdict"] for line in found[: len(many)]] == [line["verdict"] for line in found[len(many) + 1 :]]


def start(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "pipeline", "grade", *arguments],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_pipes_are_the_default_and_a_verdict_is_there_before_the_next_line_is_asked_for() -> None:
    with start("grader.deadline_seconds=20") as command:
        assert command.stdin
        assert command.stdout
        assert command.stderr
        for case, verdict in zip(CASES, VERDICTS, strict=True):
            command.stdin.write(json.dumps(case).encode() + b"\n")
            command.stdin.flush()
            assert json.loads(command.stdout.readline())["verdict"] == verdict
        command.stdin.close()
        assert b"5 lines in" in command.stderr.read()
        assert command.wait(30) == 0


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    many = write_rows(tmp_path / "cases.jsonl", [{"gold": "5", "prediction": "5" * 200, "extracts": False}] * 20_000)
    with start(f"input={many}") as command:
        assert command.stdout
        assert command.stderr
        command.stdout.readline()
        command.stdout.close()
        assert command.stderr.read() == b""
        assert command.wait(30) == 0


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.nightly), signal.SIGTERM])
def test_an_interruption_leaves_no_half_file(number: signal.Signals, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.jsonl"
    with start(f"output={output}") as command:
        assert command.stdin
        assert command.stderr
        command.stdin.write(json.dumps(CASES[0]).encode() + b"\n")
        command.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(tmp_path.iterdir()) and time.monotonic() < deadline:
            time.sleep(0.02)
        command.send_signal(number)
        assert command.wait(30) == 75
        assert b"start the same command again" in command.stderr.read()
    assert list(tmp_path.iterdir()) == []


def test_a_closed_standard_stream_is_reported() -> None:
    command = f"{sys.executable} -m pipeline grade"
    for closed, said in (("<&-", "give input=FILE"), ("</dev/null >&-", "give output=FILE")):
        done = subprocess.run(
            ["bash", "-c", f"{command} {closed}"], cwd=ROOT, env=os.environ, capture_output=True, timeout=60, text=True
        )
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
