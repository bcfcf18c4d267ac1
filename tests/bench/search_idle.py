"""Whether a search keeps its engines busy: 500 problems at once beside one after the other, on a virtual clock.

The driver, the scheduler, the worker, the searches and their storage are the real ones. The policy and the scorer are models of
7 billion parameters on H100s that work as fast as the hardware allows, on one device or on two; see `scale.engine`. Steps are
those of the oracle's tree; a byte is a token, and the policy takes a lognormal multiple of a step's tokens for it. Where both
models share a device, a pass of the scorer holds the policy up.

*Idle* is the share of the policy's slots that stand empty while no request waits for one. It counts slots that are empty while
the scorer uses a shared device, so it is too large there.
"""

import asyncio
import tempfile
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText, Request
from pipeline.engines.base import Surroundings
from pipeline.engines.oracle import ByteTokenizer
from pipeline.engines.oracle_tree import Tree
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.searches.registry import SEARCHES, search_for
from tests.bench.scale.cache import BLOCK, PrefixCache
from tests.bench.scale.engine import Reply, VirtualEngine
from tests.bench.scale.pace import QWEN_7B, Pace
from tests.bench.scale.run import DISK_SECONDS, QuickDisk
from tests.faults.loop import pause
from tests.runtime.searching.starts import started
from tests.searches.runs import settings, sums

PROBLEMS, ALONE = 500, 10
SLOTS = 256
N = 16
STEP_TOKENS = 60
SPREAD = 0.4
"""Standard deviation of the logarithm of a step's length."""
SCORED_AT_ONCE = 256
BATCH_TOKENS = 8192
"""Tokens of a forward pass of the scorer, as of vLLM."""
GENERATED_TOKENS = 400
"""Tokens of a running sequence that the prefix cache cannot keep."""


class SharedEngine(VirtualEngine):
    """A policy that a scorer on the same device holds up."""

    def hold_up(self, seconds: float) -> None:
        """Do nothing for a while."""
        since = self._decoding_since if self.load.running else max(self._now(), self._decoding_since)
        self._decoding_since = since + seconds
        if self._next is not None:
            self._schedule(self._next_steps)


@dataclass(slots=True)
class VirtualScorer:
    """A scorer that computes what no earlier chain began with, in passes of up to BATCH_TOKENS tokens, one after the other.
    `shared`: the policy that waits meanwhile. `busy_seconds`: of all passes."""

    pace: Pace
    truth: ScoringEngine
    shared: SharedEngine | None = None
    busy_seconds: float = 0.0
    capacity: int = SCORED_AT_ONCE
    model: str = "virtual"
    _cache: PrefixCache = field(default_factory=lambda: PrefixCache(QWEN_7B.kv_tokens // BLOCK))
    _waiting: "deque[tuple[int, asyncio.Future[None]]]" = field(default_factory=deque)
    _passing: "asyncio.Task[None] | None" = None

    async def start(self) -> None:
        return

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        encode, loop = ByteTokenizer().encode, asyncio.get_running_loop()
        tokens, done = [], []
        for chain in chains:
            prompt = tuple(encode("\n".join((chain.problem, *chain.steps))))
            computed = self._cache.computed(chain.chain_id, prompt)
            tokens.append((len(prompt), computed))
            done.append(loop.create_future())
            self._waiting.append((computed, done[-1]))
        if self._passing is None or self._passing.done():
            self._passing = asyncio.create_task(self._pass())
        await asyncio.gather(*done)
        scores = await self.truth.score(chains)
        return [
            replace(each, n_tokens=read, n_computed=computed)
            for each, (read, computed) in zip(scores, tokens, strict=True)
        ]

    async def close(self) -> None:
        return

    async def _pass(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft()]
            while self._waiting and sum(count for count, _ in batch) + self._waiting[0][0] <= BATCH_TOKENS:
                batch.append(self._waiting.popleft())
            computed = sum(count for count, _ in batch)
            seconds = max(self.pace.read_bytes / self.pace.bandwidth, self.pace.prefill_seconds(computed))
            self.busy_seconds += seconds
            if self.shared is not None:
                self.shared.hold_up(seconds)
            await asyncio.sleep(seconds)
            for _, future in batch:
                if not future.done():
                    future.set_result(None)


class Replies:
    """What the policy says to a request: steps of the tree up to a stop, of random lengths on the clock."""

    def __init__(self, config: SearchRunConfig) -> None:
        oracle = config.policy.oracle  # type: ignore[attr-defined]  # the oracle's settings
        self._tree = Tree(oracle, oracle.tokens_per_step)

    def __call__(self, request: Request) -> Reply:
        tree, problem = self._tree, request.problem
        path = tree.path_in(problem.problem_id, request.prefix.text)
        assert path is not None
        random, text, tokens = Random(request.request_id), "", 0.0
        for each in tree.drawn(problem.problem_id, path, request.request_id):
            step = tree.step(problem, each)
            text += step
            tokens += len(step) * random.lognormvariate(-SPREAD * SPREAD / 2, SPREAD)
            if step.endswith(request.stop or ("\0",)):
                break
        return Reply(text=text, tokens=max(1, round(tokens)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """A run on the virtual clock. `idle`: see the module; `tail`: the part of it after the last moment at which the policy was
    full. `scoring`: the share of the time in which the scorer works."""

    problems: int
    seconds: float
    idle: float
    tail: float
    scoring: float


class FarDisk(QuickDisk):
    """Takes its time on the virtual clock."""

    def write(self, path: str, data: bytes, mode: int = 0o666) -> None:
        pause(DISK_SECONDS)
        super().write(path, data, mode)


def play(method: str, problems: int, *, shared: bool, alone: bool = False) -> Searched:
    """Search with a policy and a scorer, on one device (`shared`) or on two. `alone`: one problem after the other."""
    words = [f"search={method}", f"search.n={N}", f"policy.oracle.tokens_per_step={STEP_TOKENS}"]
    words += ["run.unit_problems=1", "run.units_in_flight=1"] if alone else []
    with tempfile.TemporaryDirectory(prefix="stepvalue-search-") as folder:
        config = settings(Path(folder), sums(problems), *words)
        blocks = (QWEN_7B.kv_tokens - SLOTS * GENERATED_TOKENS) // BLOCK
        engine = SharedEngine(QWEN_7B, Replies(config), capacity=SLOTS, cache_blocks=blocks)
        made: list[VirtualScorer | None] = []

        def work(config: SearchRunConfig, around: Surroundings) -> Searching:
            truth = searching_work(config, around).scoring
            # A method that asks for no scores has none.
            made.append(None if truth is None else VirtualScorer(QWEN_7B, truth, engine if shared else None))
            return Searching(config, search_for(config.search), engine, made[-1])

        seconds = started(config, FarDisk(), work).seconds_working
    return Searched(
        problems=problems,
        seconds=seconds,
        idle=engine.work.unfilled_seconds / seconds,
        tail=engine.tail_seconds / seconds,
        scoring=made[0].busy_seconds / seconds if made[0] else 0.0,
    )


def search_idle() -> None:
    print(f"\nsearch: n = {N}, {SLOTS} slots of the policy; {QWEN_7B.name} as policy and as scorer, virtual clock")
    print("idle is wanted <= 5 %; tail: the part of it after the policy was full for the last time")
    print(f"  {'method':<11}{'devices':>7}  {'problems':<14}{'s/problem':>9}{'idle':>8}{'tail':>8}{'scorer busy':>13}")
    for method in SEARCHES.our_settings():
        for shared in (False, True):
            _print(method, shared, "at once", play(method, PROBLEMS, shared=shared))
        _print(method, False, "one by one", play(method, ALONE, shared=False, alone=True))


def _print(method: str, shared: bool, how: str, run: Searched) -> None:
    print(
        f"  {method:<11}{1 if shared else 2:>7}  {f'{run.problems} {how}':<14}{run.seconds / run.problems:>9.3f}"
        f"{run.idle:>8.1%}{run.tail:>8.1%}{run.scoring:>13.1%}",
        flush=True,
    )
