"""vLLM's scoring engine beside that of transformers, on random tiny models of the real classes: one start for each.

The tests of a kind come in their order in this file: the last one kills its engine.
"""

import asyncio
import itertools
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pipeline.core.errors import EngineDied, UsageError
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.vllm.reaper import MARK, processes_to_end
from pipeline.scorers.base import TOO_LONG, StepScores, wrong_scores
from pipeline.scorers.local import LocalEngine
from pipeline.scorers.settings import ModelEngine
from tests.scorers.loaded import chain
from tests.scorers.readers import CAUSAL, MODELS, chains, engine_by, made

pytestmark = [pytest.mark.model, pytest.mark.filterwarnings("ignore")]

BLOCK = 32
"""Tokens of a block of vLLM's prefix cache on a CPU."""
WIDEST = 1e-4
"""Of the difference between the engines, in float32. 1e-3 is asked for; with weights of this size, sums in another order make
1e-5."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Both:
    """The two engines with the same model, in an event loop."""

    kind: str
    vllm: LocalEngine
    transformers: LocalEngine
    loop: asyncio.Runner
    mark: str

    def by_vllm(self, asked: Sequence[ChainText]) -> Sequence[StepScores]:
        return self.loop.run(self.vllm.score(asked))

    def by_transformers(self, asked: Sequence[ChainText]) -> Sequence[StepScores]:
        return self.loop.run(self.transformers.score(asked))


@pytest.fixture(scope="module", params=[pytest.param(kind, marks=pytest.mark.nightly) for kind in MODELS])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    scorer = made(request.param, tmp_path_factory.mktemp(request.param))
    around = Surroundings(cpus=1, log_folder=str(tmp_path_factory.mktemp("logs")))
    vllm, transformers = (engine_by(engine, scorer, around) for engine in (ModelEngine.vllm, ModelEngine.transformers))
    with asyncio.Runner() as loop:
        loop.run(transformers.start())
        loop.run(vllm.start())
        mark = os.environ[MARK]
        try:
            yield Both(kind=request.param, vllm=vllm, transformers=transformers, loop=loop, mark=mark)
        finally:
            loop.run(vllm.close())
    assert processes_to_end(mark) == []


@pytest.fixture
def newest(both: Both, monkeypatch: pytest.MonkeyPatch) -> Both:
    """Both engines, for the last step alone."""
    for engine in (both.vllm, both.transformers):
        monkeypatch.setattr(engine, "_newest_only", True)
    return both


def close(found: Sequence[StepScores], known: Sequence[StepScores]) -> None:
    for each, other in zip(found, known, strict=True):
        assert (each.positions, each.fault, each.n_tokens) == (other.positions, other.fault, other.n_tokens)
        assert each.scores == pytest.approx(other.scores, abs=WIDEST)


def test_it_scores_as_transformers_does(both: Both) -> None:
    asked = chains(40)
    found = both.by_vllm(asked)
    assert wrong_scores(found, asked) == ""
    close(found, both.by_transformers(asked))
    spread = [score for each in found for score in each.scores if score is not None]
    assert max(spread) - min(spread) > 0.05, "scores that are all alike would show nothing"


def test_it_counts_what_it_computes(both: Both) -> None:
    """A head with classes reads all in one pass, which takes nothing from the cache. One token is asked for at a time; all but
    the last block of what came before is in the cache then."""
    (asked,) = chains(1)
    asked = replace(asked, chain_id="new", problem=asked.problem * 3)
    for _ in range(2):
        (found,) = both.by_vllm([asked])
        if both.kind in CAUSAL:
            assert len(found.scores) <= found.n_computed < found.n_tokens + BLOCK * len(found.scores)
        else:
            assert found.n_computed == found.n_tokens
    if both.kind in CAUSAL:
        assert found.n_computed <= BLOCK * len(found.scores)


def test_the_newest_step_alone_is_read_with_the_prefix_cache(newest: Both) -> None:
    """Chains that grow: what is in whole blocks is computed once."""
    whole = chain(7, "7+8*9-2+11*3", *[f"{step}+{step * 7}*3={step + step * 21}" for step in range(2, 11)])
    prefixes = [
        replace(whole, steps=whole.steps[:end], prefix_ids=whole.prefix_ids[:end])
        for end in range(1, len(whole.steps) + 1)
    ]
    found = [newest.by_vllm([prefix])[0] for prefix in prefixes]
    close(found, newest.by_transformers(prefixes))
    assert all(each.scores[:-1] == (None,) * (len(each.scores) - 1) for each in found)
    assert found[-1].n_tokens > 3 * BLOCK
    for before, each in itertools.pairwise(found):
        assert each.n_computed <= each.n_tokens - before.n_tokens // BLOCK * BLOCK
    assert sum(each.n_computed for each in found) * 2 < sum(each.n_tokens for each in found)


def test_steps_beyond_the_context_have_no_score_and_others_do(both: Both) -> None:
    asked = [chain(1, "1+2", *["1+2=3"] * 200), *chains(3)]
    found = both.by_vllm(asked)
    assert wrong_scores(found, asked) == ""
    assert found[0].fault == TOO_LONG
    assert found[0].scores[-1] is None
    assert None not in found[0].scores[:5]
    assert [each.fault for each in found[1:]] == [""] * 3


def test_calls_at_once_are_answered_each_with_its_own(both: Both) -> None:
    asked = chains(30)

    async def all_at_once() -> list[Sequence[StepScores]]:
        return list(await asyncio.gather(*(both.vllm.score(asked[begin : begin + 5]) for begin in range(0, 30, 5))))

    found = [each for part in both.loop.run(all_at_once()) for each in part]
    close(found, both.by_transformers(asked))


def test_what_vllm_refuses_has_no_numbers_and_the_next_text_has(both: Both) -> None:
    """Too long, and a token that does not exist."""
    reader = both.vllm._reader
    assert reader is not None

    async def work() -> None:
        assert await reader.read((1,) * 5000, (4999,)) is None
        assert await reader.read((10**9, 1), (1,)) is None
        nothing, numbers = await reader.read((1, 2, 3), ()), await reader.read((1, 2, 3), (0, 2))
        assert nothing is not None
        assert (nothing.rows, nothing.computed) == ((), 0)
        assert numbers is not None
        assert [len(row) for row in numbers.rows] == [2, 2]

    both.loop.run(work())


def test_its_death_is_noticed_and_explained(both: Both) -> None:
    for pid in processes_to_end(both.mark):
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(
        EngineDied, match=r"vLLM died: its process .* was killed by SIGKILL .*; its output is in .*\.log"
    ):
        both.by_vllm(chains(3))


def test_an_engine_that_is_not_started_scores_nothing(tmp_path: Path) -> None:
    engine = engine_by(ModelEngine.vllm, made("own", tmp_path))
    with pytest.raises(EngineDied, match="not running"):
        asyncio.run(engine.score(chains(1)))


def test_a_missing_model_is_a_usage_error(tmp_path: Path) -> None:
    scorer = made("own", tmp_path)
    scorer.settings.model = str(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="nowhere"):
        asyncio.run(engine_by(ModelEngine.vllm, scorer).start())
