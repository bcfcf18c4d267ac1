"""The speed in the summary of a run, from the counters of its workers."""

import asyncio
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.config.label import RunConfig
from pipeline.core.hardware import Device, Hardware, Throughput, device_named
from pipeline.core.progress import EngineWork, Status
from pipeline.engines.architectures import architecture_of
from pipeline.runtime.worker import Snapshot
from pipeline.runtime.worker_handle import WorkerPool
from tests import models
from tests.runtime.idle import IdleWorker, job, scheduler

SEVEN = architecture_of(models.QWEN_7B)
H100 = Hardware(architecture=SEVEN, device=device_named("H100 SXM"))
L40S = Hardware(architecture=SEVEN, device=device_named("L40S"))
WORK = EngineWork(generated=5_000, steps=50, finished=5_000, attended=3_000_000, unfilled_seconds=0.25)


@dataclass
class Fast(IdleWorker):
    """Always reports the same counters."""

    hardware: Hardware | None

    async def snapshot(self) -> Snapshot:
        return Snapshot(seconds=5.0, grading_seconds=0.5, work=WORK, hardware=self.hardware)


def work_off(*hardware: Hardware | None) -> tuple[Throughput | None, Status]:
    """The throughput of a scheduler with such workers at the end, and the last status that it showed."""
    shown: list[Status] = []
    handles = [Fast(each) for each in hardware]
    pool = WorkerPool(hire=lambda _: handles.pop(), workers=len(hardware))
    at_work = scheduler(pool, [job(f"u{number}") for number in range(8)], RunConfig(), watch=shown.append)
    asyncio.run(at_work.work_off())
    return at_work.throughput, shown[-1]


def test_the_work_of_all_workers_is_held_against_what_their_devices_can_do() -> None:
    printed, shown = work_off(H100, H100)
    assert printed is not None
    assert (printed.batch, printed.context, printed.grading, printed.idle) == (100, 600, 0.1, 0.05)
    assert printed.hardware == H100
    assert printed.share is not None
    assert 0 < printed.share < 1
    assert shown.share_of_bound == printed.share


def test_on_devices_of_several_kinds_there_is_no_bound() -> None:
    printed, shown = work_off(H100, L40S)
    assert printed is not None
    assert (printed.share, printed.batch, shown.share_of_bound) == (None, 100, None)
    assert printed.hardware.unknown.startswith("the engines ran on different devices")


def test_engines_that_run_on_nothing_comparable_have_no_line() -> None:
    assert work_off(None, None)[0] is None


def measured(bandwidth: float) -> Hardware:
    return Hardware(architecture=SEVEN, device=Device(name="2 CPU cores", bandwidth=bandwidth, flops=1e11, memory=0.0))


hardware = st.none() | st.sampled_from([H100, L40S, Hardware(unknown="who knows")]) | st.floats(1e9, 1e11).map(measured)
snapshots = st.builds(
    Snapshot, tokens=st.integers(0, 9), seconds=st.integers(0, 9).map(float), work=st.just(WORK), hardware=hardware
)


@given(snapshots, snapshots, snapshots)
def test_snapshots_add_up_in_any_order(one: Snapshot, two: Snapshot, three: Snapshot) -> None:
    assert (one + two) + three == one + (two + three)
    assert one + Snapshot() == Snapshot() + one == one
    there, back = one + two, two + one
    assert (there.tokens, there.seconds, there.work) == (back.tokens, back.seconds, back.work)
    assert (there.hardware is None) == (one.hardware is None and two.hardware is None)


@pytest.mark.parametrize("other", [L40S, Hardware(architecture=SEVEN), Hardware(unknown="who knows"), measured(1e10)])
def test_different_kinds_have_none_in_common(other: Hardware) -> None:
    same = Snapshot(hardware=measured(1e10)) + Snapshot(hardware=measured(1.1e10))
    assert same.hardware == measured(1e10)
    added = Snapshot(hardware=H100) + Snapshot(hardware=other)
    assert added.hardware is not None
    assert added.hardware.device is None
    assert "different devices" in added.hardware.unknown
