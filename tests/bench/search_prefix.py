"""What a scorer computes in beam search: tokens over the distinct ones of all prefixes, with vLLM's prefix cache.

The scorer is a random tiny model of Qwen's PRM in vLLM; the policy is the oracle, in a tree of long chains. *Distinct* tokens
are those of the chains that were scored, each beginning that several have counted once: no engine can compute fewer. A cache
shares whole blocks only, so each chain computes a *remainder* again: what it shares with earlier chains after the last whole
block. A run that scores whole chains each step without a cache reads all tokens.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from pipeline.core.records import ChainText
from pipeline.engines.base import Surroundings
from pipeline.runtime.searching.worker import Searching, searching_work
from pipeline.scorers.base import ScoringEngine, StepScores
from pipeline.scorers.model import ModelScorer
from pipeline.scorers.prepared import prepare
from pipeline.scorers.registry import scorer_for
from pipeline.searches.registry import search_for
from tests.conftest import write_rows
from tests.runtime.searching.starts import started
from tests.scorers.published import qwen_prm
from tests.searches.runs import sums

PROBLEMS, N, WIDTH = 6, 8, 4
DEPTH, STEP_TOKENS = 12, 64
"""Of a chain, and of a step in bytes. A byte is about a token of the tiny tokenizer here."""
BLOCK = 32
"""Tokens of a block of vLLM's prefix cache on a CPU."""
WANTED = 1.5


@dataclass(slots=True)
class Recorded:
    """A scorer that remembers which chains it was asked for. Implements `ScoringEngine`."""

    inner: ScoringEngine
    asked: list[ChainText] = field(default_factory=list)
    read: int = 0
    computed: int = 0

    @property
    def model(self) -> str:
        return self.inner.model

    @property
    def capacity(self) -> int:
        return self.inner.capacity

    async def start(self) -> None:
        await self.inner.start()

    async def score(self, chains: Sequence[ChainText]) -> Sequence[StepScores]:
        self.asked += chains
        found = await self.inner.score(chains)
        self.read += sum(each.n_tokens for each in found)
        self.computed += sum(each.n_computed for each in found)
        return found

    async def close(self) -> None:
        await self.inner.close()


def search_prefix() -> None:
    with tempfile.TemporaryDirectory(prefix="stepvalue-prefix-") as name:
        folder = Path(name)
        (folder / "prm").mkdir()
        config = _config(folder)
        made: list[Recorded] = []

        def work(config: SearchRunConfig, around: Surroundings) -> Searching:
            usual = searching_work(config, around)
            assert usual.scoring is not None
            made.append(Recorded(usual.scoring))
            return Searching(config, search_for(config.search), usual.engine, made[-1])

        started(config, work=work, run=asyncio.run)
        scorer = scorer_for(config.scorer)
        assert isinstance(scorer, ModelScorer)
        _print(made[0], [each.ids for each in prepare(scorer).encoded(made[0].asked, newest_only=True)])


def _config(folder: Path) -> SearchRunConfig:
    data = write_rows(folder / "rows.jsonl", sums(PROBLEMS))
    words = [
        f"data.path={data}", f"run_dir={folder / 'run'}", "search=beam", f"search.n={N}", f"search.width={WIDTH}",
        "policy=oracle", "policy.oracle.world=tree", f"policy.oracle.depth={DEPTH}",
        f"policy.oracle.tokens_per_step={STEP_TOKENS}",
        "scorer=qwen", f"scorer.model={qwen_prm(folder / 'prm')}", "scorer.dtype=float32", "scorer.max_num_seqs=32",
    ]  # fmt: skip
    config = compose(SEARCH, words).settings()
    assert isinstance(config, SearchRunConfig)
    return config


def _print(scorer: Recorded, chains: Sequence[Sequence[int]]) -> None:
    seen: set[int] = set()
    remainder = 0
    for ids in chains:
        shared, key = 0, 0
        for token in ids:
            key = hash((key, token))
            shared += key in seen
            seen.add(key)
        # A block that holds the last token is not shared: a pass computes at least one token.
        remainder += shared - min(shared, len(ids) - 1) // BLOCK * BLOCK
    longest = max(map(len, chains))
    print(
        f"\nsearch: beam, n = {N}, width = {WIDTH}, {PROBLEMS} problems; {len(chains):,} prefixes of up to {longest} tokens"
    )
    print(f"  {scorer.read:,} tokens read, {scorer.computed:,} computed, {len(seen):,} distinct")
    print(
        f"  computed / distinct {scorer.computed / len(seen):.2f}, wanted <= {WANTED:g}; whole chains each step would be "
        f"{scorer.read / len(seen):.1f}"
    )
    print(f"  remainder of blocks of {BLOCK}: {remainder:,} tokens, {remainder / len(seen):.2f} of the distinct ones")
