"""What is printed is what is stored: text stays text, nothing unknown looks like a number, totals are shown whole."""

import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from pipeline.__main__ import main
from pipeline.analysis.chains import chain_tables
from pipeline.analysis.report.run_data import RejectedRows
from pipeline.analysis.report.run_lines import new_label_lines, reject_lines, speed_lines, summary_lines
from pipeline.analysis.report.run_report import read_run, short_lines, sparkline
from pipeline.core.hardware import Hardware, Throughput, device_named
from pipeline.core.progress import RelabelResult, Summary
from pipeline.core.records import Reject, RejectReason, RowLocation, Tally, Totals
from pipeline.display.document import Part
from pipeline.display.terminal import show, terminal
from pipeline.engines.architectures import architecture_of
from pipeline.storage.local import LocalStorage
from pipeline.storage.starts import FOLDER
from tests import models
from tests import strategies as our
from tests.library import Library


def printed(*parts: Part, terminal: bool = False) -> str:
    output = Console(file=io.StringIO(), width=100, force_terminal=terminal, highlight=False, _environ={})
    show(parts, output)
    assert isinstance(output.file, io.StringIO)
    return output.file.getvalue()


def chain(**changes: object) -> dict[str, Any]:
    row: dict[str, Any] = {
        "problem_id": "p1", "chain_id": "c1", "source_id": "row-1", "problem": "How many apples?", "gold_answer": "3",
        "outcome": True, "final_answer": "5", "root_value": 0.5, "root_low": 0.16, "root_high": 0.84, "root_n_correct": 4,
        "root_n_rollouts": 8, "steps": ["Take one.", "Take two.", "So 3."], "value": [0.25, None, 1.0],
        "low": [0.03, None, 1.0], "high": [0.65, None, 1.0], "n_correct": [2, 0, 0], "n_rollouts": [8, 0, 0],
        "label": [1, None, 0], "origin": ["measured", "unmeasured", "terminal"], "estimator": "fixed",
    }  # fmt: skip
    return row | changes


def shown(*chains: Mapping[str, Any], terminal: bool = False) -> str:
    return printed(*chain_tables(chains), terminal=terminal)


def line_of(text: str, start: str) -> str:
    (line,) = [line for line in text.splitlines() if start in line]
    return " ".join(line.split())


def test_a_chain_is_shown_step_by_step() -> None:
    text = shown(chain())
    assert "How many apples?" in text
    assert "answer 3; value before step 1: 0.50 (0.16-0.84), 4/8" in text
    assert "row-1 (right)" in text
    assert line_of(text, "Take one.").startswith("1 Take one. 0.25 ██········ 0.03-0.65 2/8 +")
    assert line_of(text, "Take two.") == "2 Take two. - unmeasured ?"
    assert line_of(text, "So 3.") == "3 So 3. 1.00 ██████████ terminal -"


def test_the_best_estimate_is_shown_for_a_prefix_without_rollouts_too() -> None:
    text = shown(
        chain(
            estimator="pooled",
            root_value=0.4,
            value=[0.31, 0.72, 1.0],
            low=[0.1, 0.5, 1.0],
            high=[0.6, 0.9, 1.0],
            label=[None, 2, 1],
            origin=["measured", "implied", "terminal"],
        )
    )
    assert "value before step 1: 0.40 (0.16-0.84), 4/8" in text
    assert line_of(text, "Take one.").startswith("1 Take one. 0.31 ███······· 0.10-0.60 2/8 ?")
    assert line_of(text, "Take two.") == "2 Take two. 0.72 ███████··· 0.50-0.90 implied o"


def test_what_is_unknown_never_looks_like_a_number() -> None:
    text = shown(chain(outcome=None, source_id=None, root_value=None, root_low=None, root_high=None, root_n_rollouts=0))
    assert "value before step 1: unknown" in text
    assert "c1 (open)" in text
    assert "None" not in text


def test_a_problem_is_reported_once_for_all_its_chains() -> None:
    text = shown(chain(), chain(source_id="row-2", outcome=False), chain(problem_id="p2", problem="And pears?"))
    assert text.count("How many apples?") == 1
    assert text.count("And pears?") == 1
    assert "row-2 (wrong)" in text


def reject(file: str, line: int, detail: str) -> Reject:
    return Reject(location=RowLocation(file=file, line=line), reason=RejectReason.MISSING_ANSWER, detail=detail)


REJECTED = [reject("/data/my.jsonl", number, f"Row {number}. Name the column.") for number in (3, 8, 9)]


@pytest.mark.parametrize(
    ("counts", "rest"), [({"missing_answer": 3}, "all of them"), ({"bad_text": 5}, "2 more, all of them")]
)
def test_the_first_rejects_are_shown_with_the_remedy_and_where_the_rest_is(counts: dict[str, int], rest: str) -> None:
    rejected = RejectedRows(counts=counts, first=tuple(REJECTED))
    heading, *rows, last = printed(*reject_lines(rejected, "out")).splitlines()
    assert heading == f"rejected  {', '.join(f'{count} {reason}' for reason, count in counts.items())}"
    assert [row.strip() for row in rows] == [
        f"my.jsonl, row {number}: missing_answer: Row {number}. Name the column." for number in (3, 8, 9)
    ]
    assert last.strip() == f"{rest} with what to do: out/rejects/*.parquet"


@given(our.any_text)
def test_no_text_of_a_reject_brings_a_control_character_or_a_line(text: str) -> None:
    rejected = RejectedRows(counts={"bad_text": 1}, first=(reject(text, 1, text * 50),))
    shown_lines = printed(*reject_lines(rejected, "out")).splitlines()
    assert len(shown_lines) == 3
    assert all(line.isprintable() for line in shown_lines)


def test_nothing_to_show_is_nothing_shown() -> None:
    assert shown().strip() == ""


HOSTILE = "\x1b[31mred\x1b]0;title\x07 [bold]x[/bold] [/] \x00\x08\r\u202e\x9b2J [link=file:///etc]y[/link]"


@pytest.mark.parametrize("place", ["problem", "gold_answer", "source_id", "steps"])
@pytest.mark.parametrize("terminal", [True, False])
def test_hostile_text_is_shown_and_not_obeyed(place: str, terminal: bool) -> None:
    dirty = chain(**{place: [HOSTILE, "b", "c"] if place == "steps" else HOSTILE})
    clean = chain(**{place: ["t", "b", "c"] if place == "steps" else "t"})
    text, plain = shown(dirty, terminal=terminal), shown(clean, terminal=terminal)
    assert "[bold]x[/bold]" in text.replace("\n", "")
    assert set(text) & set("\x00\x07\x08\r\u202e\x9b") == set()
    # The only escapes are the styles that the clean text has too.
    assert {part.partition("m")[0] for part in text.split("\x1b")[1:]} <= {
        part.partition("m")[0] for part in plain.split("\x1b")[1:]
    }
    assert "[31mred" not in text.replace("�[31mred", "")


@given(our.any_text)
def test_no_text_of_a_model_brings_a_control_character(text: str) -> None:
    output = shown(chain(problem=text, steps=[text, "b", "c"], gold_answer=text))
    assert all(character.isprintable() or character == "\n" for character in output)


def test_long_steps_are_folded_and_not_cut() -> None:
    words = [f"word{number}" for number in range(60)]
    text = shown(chain(steps=[" ".join(words), "x" * 300, "c"]))
    assert all(word in text for word in words)
    assert text.count("x") >= 300
    assert all(len(line) <= 100 for line in text.splitlines())


TOTALS = Totals(
    rows=1234, used=1230, rejected=4, problems=600, chains=1230, prefixes=7000, rollouts=56_000, tokens=5_600_000,
    correct=30_000, incorrect=20_000, no_answer=5_000, ungraded=1_000, truncated=77, too_long=3, engine_failed=5,
    solution_tokens=888,
)  # fmt: skip


def summary(
    totals: Totals = TOTALS,
    units_done_now: int = 2,
    damaged: tuple[str, ...] = ("rollouts/[red]x.parquet",),
    labels: str = "",
    throughput: Throughput | None = None,
) -> str:
    found = Summary(
        run_dir="/runs/[red]a", tally=totals.tally, units=40, units_done_now=units_done_now,
        added=Tally(rollouts=2_800, tokens=280_000), seconds_starting=12.4, seconds_working=100.0, damaged=damaged,
        labels=labels, throughput=throughput,
    )  # fmt: skip
    return printed(*summary_lines(found))


def test_a_summary_shows_counts_that_add_up() -> None:
    text = summary()
    assert "1,234 read = 1,230 used + 4 rejected" in text
    assert "600 problems, 1,230 chains, 7,000 distinct prefixes" in text
    assert "56,000 = 30,000 correct + 20,000 incorrect + 5,000 without an answer + 1,000 ungraded" in text
    assert "77 of them cut by sampling.max_tokens" in text
    assert "3 prefixes did not fit into the policy's context" in text
    assert "5 got no answer from any engine" in text
    assert "on average 8.0 for each prefix" in text
    assert "damaged   rollouts/[red]x.parquet: moved to damaged/" in text
    assert "5,600,000 in rollouts, 888 in sampled solutions" in text
    assert "12 s to start, 100 s to sample and grade 2,800 rollouts (2,800 tokens/s)" in text
    assert "/runs/[red]a/labels/*.parquet" in text
    assert "Nothing to do" not in text


def test_a_summary_reports_how_far_engines_were_from_their_bound() -> None:
    speed = Throughput(
        hardware=Hardware(device=device_named("L40S")), engines=1.0, tokens_per_second=2_800.0, batch=200.0,
        context=600.0, idle=0.01, grading=0.02, share=0.5, prefill_share=0.1,
    )  # fmt: skip
    assert (
        "engine    2,800 tokens/s, 50 % of the most that L40S can generate with 200 completions at a time and 600 tokens of "
        "context (60 % if work on prompts counts too)\n"
        "          1.0 % of the engine's slots were idle\n"
        "          grading took 2.0 % of the engine's time\n"
    ) in summary(throughput=speed)


def test_a_finished_run_says_so_and_reports_no_speed() -> None:
    text = summary(units_done_now=0)
    assert "Nothing to do: this run is already finished." in text
    assert "tokens/s" not in text
    assert "1,234 read" in text


def test_what_did_not_happen_is_not_mentioned() -> None:
    text = summary(
        Totals(rows=1, used=1, problems=1, chains=1, prefixes=2, rollouts=8, tokens=80, correct=8), damaged=()
    )
    assert "engine" not in text
    assert "damaged" not in text
    assert "cut by" not in text
    assert "too long" not in text
    assert "sampled solutions" not in text


def test_a_summary_says_whose_labels_are_current_where_that_can_be_asked() -> None:
    assert "these are" not in summary()
    assert summary(labels="of edition 3").endswith("labels/*.parquet\n          these are of edition 3\n")


def test_what_was_made_of_labels_is_reported_in_counts() -> None:
    changes = Counter({"no_answer to correct, of another answer in the text": 7})
    found = RelabelResult(
        run_dir="/runs/[red]a", number=3, chains=1_000, labels=5_000, labels_changed=1_234, rollouts=40_000,
        verdict_changes=changes,
    )  # fmt: skip
    assert printed(*new_label_lines(found)) == (
        "verdicts  7 of 40,000 changed\n          7 from no_answer to correct, of another answer in the text\n"
        "labels    1,234 of 5,000 changed, in a run of 1,000 chains\n"
        "edition   3 is new and holds the current labels: /runs/[red]a/labels/*.parquet\n"
    )
    unchanged = new_label_lines(RelabelResult(run_dir="/runs/a"))
    assert printed(*unchanged) == "Nothing to do: the labels already have these settings.\n"


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


def test_a_terminal_gets_whole_words_below_the_name_and_a_log_one_line() -> None:
    long = "steps     30 = 24 good + 6 bad; not counted: 24 last steps of chains, with the outcome as value"

    def printed(*, a_terminal: bool) -> list[str]:
        file = io.StringIO()
        show([f"{long}\nnone"], terminal(file=file, width=40, force_terminal=a_terminal, no_color=True))
        return file.getvalue().splitlines()

    assert printed(a_terminal=False) == [long, "none"]
    assert printed(a_terminal=True) == [
        "steps     30 = 24 good + 6 bad; not",
        "          counted: 24 last steps of",
        "          chains, with the outcome as",
        "          value",
        "none",
    ]
