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
        "23,452 tokens/s = 71 % of the decode bound of H100 SXM at batch 240 and context 1,611 (74 % with prompts)",
        "idle 0.8 % (tail 0.5 %); prompt tokens computed 1.04 times each; grading 3.1 %",
    ]


def test_engines_and_devices_are_counted_where_there_are_several() -> None:
    first = speed_lines(replace(SPEED, engines=7.9, hardware=replace(HARDWARE, devices=2)))[0]
    assert first.startswith("23,452 tokens/s of 8 engines = 71 % of the decode bound of 2 x H100 SXM at batch 240")


def test_without_a_bound_the_reason_is_reported() -> None:
    unknown = Hardware(unknown="NVIDIA B200 is unknown: give policy.device.bandwidth")
    first, second = speed_lines(
        replace(SPEED, hardware=unknown, share=None, prefill_share=None, tail=None, prefill_ratio=None)
    )
    assert first == (
        "23,452 tokens/s at batch 240 and context 1,611; no bound: NVIDIA B200 is unknown: give policy.device.bandwidth"
    )
    assert second == "idle 0.8 %; grading 3.1 %"
