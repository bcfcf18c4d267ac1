"""The short form: golden, its sparkline, and the lines on a run's speed."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.__main__ import main
from pipeline.analysis.report.run_report import read_run, short_lines, sparkline
from pipeline.analysis.report.terminal import speed_lines
from pipeline.core.hardware import Hardware, Throughput, device_named
from pipeline.engines.architectures import architecture_of
from pipeline.storage.local import LocalStorage
from pipeline.storage.starts import FOLDER
from tests import models
from tests.library import Library

ORACLE = (
    "the values are made up, for a demonstration or a test: the oracle draws them from success probabilities of its own, "
    "without a model"
)


def test_the_short_form_of_an_oracle_run(library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_dir = library.copy("mixed", tmp_path)
    assert main(["report", f"run_dir={run_dir}"]) == 0
    assert (
        capsys.readouterr().out
        == f"""\
rows      9 read = 7 used + 2 rejected
work      5 problems, 9 chains, 16 distinct prefixes
rollouts  45 = 32 correct + 13 incorrect + 0 without an answer + 0 ungraded
          on average 2.8 for each prefix
          1 prefix did not fit into the policy's context: see rejects/
tokens    1,313 in rollouts, 148 in sampled solutions
policy    {ORACLE}
values    0 ▂·····▅······▃·····█ 1  a histogram, last steps left out; mean value 0.83 in right chains, 0.67 in wrong chains
steps     15 = 13 good + 1 bad + 1 uncertain (6.7 %); not counted: 8 last steps of chains, with the outcome as value
rule      lasting_drop: a step is bad if the value falls to 0.5 of its best so far, or below, and stays there, else good
outcomes  1 of 7 chains have p_outcome below 0.1: the value before the last step makes their outcome unlikely (0 right, 1 wrong)
report    {(run_dir / "report.html").as_uri()}
"""
    )


def test_the_short_form_says_why_rollouts_are_ungraded(library: Library, tmp_path: Path) -> None:
    found = read_run(LocalStorage(library.copy("mixed", tmp_path)), None).found
    verdict = pl.when(verdict="incorrect").then(pl.lit("timeout")).otherwise("verdict")
    changed = replace(found, log=found.log.with_columns(verdict=verdict))
    assert "ungraded  13 timeout" in short_lines(changed, (), ())
    assert not [line for line in short_lines(found, (), ()) if line.startswith("ungraded")]


def test_damaged_starts_are_named_in_the_short_form_and_on_the_page(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir = library.copy("mixed", tmp_path)
    (start,) = (run_dir / FOLDER).iterdir()
    start.write_bytes(start.read_bytes()[:100])
    start.with_name(f"start-{'f' * 20}-00000.json").write_text("{}")
    assert main(["report", f"run_dir={run_dir}"]) == 0
    words = (
        f"{FOLDER}/{start.name} and 1 more cannot be read: their data, such as device hours and money, are not counted"
    )
    assert f"\ndamaged   {words}\n" in capsys.readouterr().out
    assert f"{words}." in (run_dir / "report.html").read_text()


@given(st.lists(st.integers(0, 10**9), max_size=20))
def test_a_sparkline_is_as_high_as_its_counts(counts: list[int]) -> None:
    line = sparkline(counts)
    assert len(line) == len(counts)
    assert [mark == "·" for mark in line] == [count == 0 for count in counts]
    by_count = [mark for _, mark in sorted(zip(counts, line, strict=True)) if mark != "·"]
    assert by_count == sorted(by_count)
    assert not any(counts) or max(line) == "█"


HARDWARE = Hardware(architecture=architecture_of(models.QWEN_7B), device=device_named("H100 SXM"))
SPEED = Throughput(
    hardware=HARDWARE, engines=1.02, tokens_per_second=23_451.7, batch=240.4, context=1611.2, idle=0.0081, tail=0.005,
    grading=0.031, prefill_ratio=1.042, share=0.713, prefill_share=0.022,
)  # fmt: skip


def test_a_speed_stands_beside_its_bound() -> None:
    assert speed_lines(SPEED) == [
        "23,452 tokens/s, 71 % of the most that H100 SXM can generate with 240 completions at a time and 1,611 tokens of "
        "context (74 % if work on prompts counts too)",
        "0.8 % of the engine's slots were idle (0.5 % after the last unit was given out)",
        "each token of a prompt was computed 1.04 times on average (at best 1); grading took 3.1 % of the engine's time",
    ]


def test_engines_and_devices_are_counted_where_there_are_several() -> None:
    first, second, _ = speed_lines(replace(SPEED, engines=7.9, hardware=replace(HARDWARE, devices=2)))
    assert first.startswith(
        "23,452 tokens/s of 8 engines, 71 % of the most that 2 x H100 SXM can generate with 240 compl"
    )
    assert second.startswith("0.8 % of the engines' slots were idle (")


def test_a_run_that_was_without_an_engine_for_a_while_says_so() -> None:
    first, *_ = speed_lines(replace(SPEED, engines=0.28))
    assert " tokens/s of an engine that was there for 28 % of the time, 71 % of the most that " in first


def test_without_a_bound_the_reason_is_reported() -> None:
    unknown = Hardware(unknown="NVIDIA B200 is unknown: give policy.device.bandwidth")
    first, second, third = speed_lines(
        replace(SPEED, hardware=unknown, share=None, prefill_share=None, tail=None, prefill_ratio=None)
    )
    assert first == (
        "23,452 tokens/s with 240 completions at a time and 1,611 tokens of context; what the hardware allows is unknown: "
        "NVIDIA B200 is unknown: give policy.device.bandwidth"
    )
    assert second == "0.8 % of the engine's slots were idle"
    assert third == "grading took 3.1 % of the engine's time"
