"""Scoring with a process reward model of the default policy's size: vLLM beside transformers, and step by step."""

import asyncio
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil
import torch
from transformers import AutoTokenizer

from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.engines.embedded import embedded_model
from pipeline.engines.vllm.reaper import MARK, marked_processes
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.scorers.own import Own
from pipeline.scorers.settings import ModelEngine, OwnConfig
from pipeline.train.model import new_model
from tests.scorers.loaded import chain
from tests.scorers.readers import engine_by

CHAINS, ROUNDS = 500, 5
"""The engines take turns, so that other work on the machine disturbs both."""
STEPS = (2, 9)
"""Of a chain, and not more than the second number less one; GSM8K's have about as many."""
WORDS = (8, 25)
"""Of a step. A word is about 1.3 tokens."""
LONG_CHAINS = 6
LONG_STEPS = 24
LEAST_TOKENS = 512
CPUS = 2
SENTENCE = """the number of is equal to and then we have so each box holds apples more than twice as many total cost per day sum
half product minus plus times divided by remaining first second therefore left shop price dollars hours kilometres between"""


@dataclass(slots=True)
class Turns:
    """An engine, and what its turns took. `own`: processor time of this process; `all`: with the engine's other processes."""

    engine: ScoringEngine
    start: float = 0.0
    seconds: float = 0.0
    own: float = 0.0
    all: float = 0.0
    pids: list[int] = field(default_factory=list)
    found: list[StepScores] = field(default_factory=list)


def scoring() -> None:
    print(
        f"\nscoring: goals: {CHAINS} chains, vLLM not slower than batches of transformers; 1 ms of processor time beside the "
        f"model per chain; step by step on chains of {LEAST_TOKENS} tokens, 3 times fewer tokens with the prefix cache"
    )
    torch.set_num_threads(CPUS)
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        scorer = random_prm(Path(folder))
        asked = [random_chain(number, np.random.default_rng(number), STEPS) for number in range(CHAINS)]
        asyncio.run(_whole(scorer, asked))
        asyncio.run(_step_by_step(engine_by(ModelEngine.vllm, scorer, Surroundings(cpus=CPUS), newest_only=True)))


def random_prm(folder: Path) -> Own:
    """The default policy's trunk under a random head, in float32."""
    torch.manual_seed(0)
    source = str(embedded_model())
    model = new_model(source, None, separator="\n", layers=None)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return Own(OwnConfig(model=str(folder), dtype="float32", max_length=2048))


def random_chain(number: int, rng: np.random.Generator, steps: tuple[int, int]) -> ChainText:
    """Sentences of common words and numbers."""

    def sentence() -> str:
        words = rng.choice(SENTENCE.split(), size=int(rng.integers(*WORDS)))
        return " ".join([*words, str(rng.integers(1000)), "=", f"{rng.integers(1000)}."])

    return chain(number, f"{sentence()} {sentence()}", *[sentence() for _ in range(int(rng.integers(*steps)))])


async def _whole(scorer: Own, asked: Sequence[ChainText]) -> None:
    engines = {
        "transformers": Turns(engine_by(ModelEngine.transformers, scorer)),
        "vLLM": Turns(engine_by(ModelEngine.vllm, scorer, Surroundings(cpus=CPUS))),
    }
    warm = [random_chain(-1, np.random.default_rng(CHAINS), STEPS)]
    try:
        for name, turns in engines.items():
            began = time.perf_counter()
            await turns.engine.start()
            turns.start = time.perf_counter() - began
            if name == "vLLM":
                turns.pids = marked_processes(os.environ[MARK])
            await turns.engine.score(warm)
        for number in range(ROUNDS):
            for name, turns in engines.items():
                await _turn(turns, asked[number::ROUNDS])
                print(f"  round {number + 1} of {ROUNDS}, {name}: {turns.seconds:.0f} s so far", flush=True)
    finally:
        for turns in engines.values():
            await turns.engine.close()
    for name, turns in engines.items():
        tokens = sum(each.n_tokens for each in turns.found)
        print(
            f"  {name}: start {turns.start:.1f} s; {len(asked) / turns.seconds:.2f} chains/s, "
            f"{tokens / turns.seconds:,.0f} tokens/s, {1000 * turns.all / len(asked):,.0f} ms of processor time per chain of "
            f"{tokens / len(asked):.0f} tokens"
        )
    print(f"  beside vLLM's processes: {1000 * engines['vLLM'].own / len(asked):.2f} ms of processor time per chain")
    print(f"  largest difference of a score: {_difference(*(turns.found for turns in engines.values())):.1e}")


async def _turn(turns: Turns, asked: Sequence[ChainText]) -> None:
    began, own, others = time.perf_counter(), time.process_time(), _processor_time(turns.pids)
    turns.found += await turns.engine.score(asked)
    spent = time.process_time() - own
    turns.seconds += time.perf_counter() - began
    turns.own += spent
    turns.all += spent + _processor_time(turns.pids) - others


def _processor_time(pids: Sequence[int]) -> float:
    """Seconds, of all threads."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return float(sum(each.user + each.system for each in times))


def _difference(one: Sequence[StepScores], other: Sequence[StepScores]) -> float:
    pairs = (
        (mine, theirs)
        for each, their in zip(one, other, strict=True)
        for mine, theirs in zip(each.scores, their.scores, strict=True)
    )
    return max(abs(mine - theirs) for mine, theirs in pairs if mine is not None and theirs is not None)


async def _step_by_step(engine: ScoringEngine) -> None:
    rng = np.random.default_rng(1)
    whole = [random_chain(number, rng, (LONG_STEPS, LONG_STEPS + 1)) for number in range(LONG_CHAINS)]
    read = computed = 0
    shortest = 0
    try:
        await engine.start()
        for end in range(1, LONG_STEPS + 1):
            prefixes = [chain(at, each.problem, *each.steps[:end]) for at, each in enumerate(whole)]
            found = await engine.score(prefixes)
            read += sum(each.n_tokens for each in found)
            computed += sum(each.n_computed for each in found)
            shortest = min(each.n_tokens for each in found)
    finally:
        await engine.close()
    print(
        f"  step by step: {LONG_CHAINS} chains of {LONG_STEPS} steps and {shortest} tokens or more, scored after every step: "
        f"{computed:,} tokens computed of {read:,} that whole chains have: {read / computed:.1f} times fewer"
    )
    assert shortest >= LEAST_TOKENS
