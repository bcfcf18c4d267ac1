"""Rollouts in progress that no longer count are aborted; the order in which the others finish changes no label."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pipeline.config.fields import as_type
from pipeline.core.progress import Summary
from pipeline.core.records import Completion, Request
from pipeline.engines.oracle import OracleEngine, OraclePolicyConfig
from tests.runtime.adaptive import labels, proved, settings, sums, table
from tests.runtime.in_process import label_in_process

SPENT = ["rollout_tokens", "n_truncated", "root_n_truncated"]


class TricklingEngine(OracleEngine):
    """Answers one request at a time, in an order of its own."""

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        shuffled = Random(len(requests)).sample(requests, len(requests))
        self._outstanding.update(request.request_id for request in shuffled)
        for request in shuffled:
            await asyncio.sleep(0)
            async for batch in super().generate([request], keep_tokens=keep_tokens):
                yield batch


def labelled(folder: Path, *overrides: str) -> tuple[Summary, list[dict[str, Any]]]:
    config = settings(folder, sums(12), *overrides)
    summary = label_in_process(config, engine=TricklingEngine(as_type(config.policy, OraclePolicyConfig)))
    proved(folder)
    return summary, labels(folder).drop(SPENT).sort("chain_id").to_dicts()


@pytest.mark.parametrize("name", ["first_success", "bisect"])
def test_a_batch_gives_the_labels_of_one_at_a_time_and_what_it_need_not_finish_is_aborted(
    tmp_path: Path, name: str
) -> None:
    asked = [f"estimator={name}", "sampling.rollouts=16"]
    alone, of_alone = labelled(tmp_path / "alone", *asked)
    batched, of_batched = labelled(tmp_path / "batched", *asked, "estimator.batch=16")
    assert of_batched == of_alone
    assert alone.totals.aborted == 0
    totals = batched.totals
    assert totals.aborted > 0
    assert totals.rollouts == totals.correct + totals.incorrect + totals.no_answer + totals.ungraded + totals.aborted
    assert totals.ungraded == 0
    finishes = table(tmp_path / "batched", "rollouts")["finish"].to_list()
    assert finishes.count("abort") == totals.aborted
    again = label_in_process(settings(tmp_path / "batched", sums(12), *asked, "estimator.batch=16"))
    assert again.units_done_now == 0
