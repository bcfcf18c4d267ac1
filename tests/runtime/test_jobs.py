"""A suspect unit is split until each request that kills engines is found."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.worker_handle import WorkerLocation
from tests.runtime import idle


@given(st.sets(st.integers(0, 300), min_size=1, max_size=300), st.data())
def test_exactly_the_deadly_requests_are_written_off(numbers: set[int], data: st.DataObject) -> None:
    requests = [f"{number:05d}" for number in sorted(numbers)]
    deadly = set(data.draw(st.lists(st.sampled_from(requests), max_size=5)))
    job = idle.job(groups=[requests])
    answered: set[str] = set()
    deaths = 0
    while job.groups:
        probe = job.probe().probe
        assert probe is not None
        if probe.only & deadly:
            deaths += 1
            job.fail_group(WorkerLocation(), has_others=False)
        else:
            answered |= probe.only
            written_off = probe.failed
            job.pass_group()
    assert job.written_off == deadly
    assert answered == set(requests) - deadly
    assert not deadly or written_off == deadly or written_off < deadly
    assert deaths <= len(deadly) * (len(requests).bit_length() + 1)
