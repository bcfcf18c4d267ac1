"""A kind of run as somebody else would ship it: it counts the tokens of each step with a tokenizer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from pipeline.config.task import TaskConfig
from pipeline.core.records import ChainText, Int64
from pipeline.core.table import Table
from pipeline.runtime.chain_run.rows import RowsTask

CHARACTERS = "characters"
"""The tokenizer that has a token for each character."""


@dataclass(kw_only=True, slots=True)
class CountTokensConfig(TaskConfig):
    tokenizer: str = CHARACTERS
    """The name or the folder of a tokenizer; `characters` counts characters."""


class StepTokens(NamedTuple):
    """A step of a chain, counted from 1, and its number of tokens."""

    row: Int64
    chain_id: str
    step_index: int
    n_tokens: int


class CountTokens(RowsTask[CountTokensConfig]):
    name = "count_tokens"
    settings = CountTokensConfig
    summary = "count the tokens of each step"
    examples = ("count_tokens run_dir=out tokenizer=Qwen/Qwen3-8B", "count_tokens run_dir=out --estimate")
    table = Table("steptokens", StepTokens, key=("row", "step_index"))
    to_do, done, results = "count", "counted", "tokens"

    @cached_property
    def _tokenizer(self) -> Any:
        if self.config.tokenizer == CHARACTERS:
            return list
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self.config.tokenizer).tokenize

    def rows(self, row: int, chain: ChainText) -> Sequence[StepTokens]:
        counts = [len(self._tokenizer(step)) for step in chain.steps]
        return [StepTokens(row, chain.chain_id, index, count) for index, count in enumerate(counts, start=1)]

    @classmethod
    def faults(cls, chain: ChainText, rows: Sequence[StepTokens]) -> Iterator[str]:
        if [row.step_index for row in rows] != list(range(1, len(chain.steps) + 1)):
            yield "has not one row for each step"
