"""The lines on a run's speed."""

from dataclasses import replace

from pipeline.analysis.report.terminal import speed_lines
from pipeline.core.hardware import Hardware, Throughput, device_named
from pipeline.engines.architectures import architecture_of
from tests import models

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
