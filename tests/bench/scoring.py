"""Scoring with a process reward model of the default policy's size: vLLM beside transformers, and step by step."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from transformers import AutoTokenizer

from pipeline.engines.base import Surroundings
from pipeline.engines.embedded import embedded_model
from pipeline.scorers.base import ChainText, ScoringEngine, StepScores
from pipeline.scorers.own import Own
from pipeline.scorers.settings import OwnConfig
from pipeline.scorers.transformers import TransformersEngine
from pipeline.scorers.vllm import VllmScoring
from pipeline.train.model import new_model
from tests.scorers.readers import chain_text

CHAINS = 500
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
Make = Callable[[Own, bool], ScoringEngine]
ENGINES: dict[str, Make] = {
    "vLLM": lambda scorer, newest: VllmScoring(scorer, Surroundings(cpus=CPUS), newest_only=newest),
    "transformers": lambda scorer, newest: TransformersEngine(scorer, newest_only=newest),
}


def scoring() -> None:
    print(
        f"\nscoring: goals: {CHAINS} chains, vLLM not slower than batches of transformers; 1 ms of processor time beside the "
        f"model per chain; step by step on chains of {LEAST_TOKENS} tokens, 3 times fewer tokens with the prefix cache"
    )
    torch.set_num_threads(CPUS)
    with tempfile.TemporaryDirectory(prefix="stepvalue-bench-") as folder:
        scorer = random_prm(Path(folder))
        asked = [random_chain(number, np.random.default_rng(number), STEPS) for number in range(CHAINS)]
        found = {name: asyncio.run(_whole(name, make(scorer, False), asked)) for name, make in ENGINES.items()}
        print(f"  largest difference of a score: {_difference(*found.values()):.1e}")
        asyncio.run(_step_by_step(ENGINES["vLLM"](scorer, True)))


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

    return chain_text(number, f"{sentence()} {sentence()}", [sentence() for _ in range(int(rng.integers(*steps)))])


async def _whole(name: str, engine: ScoringEngine, asked: Sequence[ChainText]) -> Sequence[StepScores]:
    began = time.perf_counter()
    try:
        await engine.start()
        started = time.perf_counter() - began
        await engine.score([random_chain(-1, np.random.default_rng(CHAINS), STEPS)])
        began, busy = time.perf_counter(), time.process_time()
        found = await engine.score(asked)
        seconds, busy = time.perf_counter() - began, time.process_time() - busy
    finally:
        await engine.close()
    tokens = sum(each.n_tokens for each in found)
    print(
        f"  {name}: start {started:.1f} s; {len(asked) / seconds:.2f} chains/s, {tokens / seconds:,.0f} tokens/s, "
        f"{tokens / len(asked):.0f} tokens a chain"
    )
    if isinstance(engine, VllmScoring):
        # vLLM computes the model in processes of its own.
        print(f"  {name}: {1000 * busy / len(asked):.2f} ms of this process's processor time per chain")
    return found


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
            prefixes = [chain_text(at, chain.problem, chain.steps[:end]) for at, chain in enumerate(whole)]
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
