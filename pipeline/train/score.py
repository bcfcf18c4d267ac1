"""The `score` command: scores every step of given chains with a trained model, and each chain from its step scores."""

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.config.choices import Aggregation
from pipeline.core.errors import InputError, UsageError
from pipeline.core.schemas import SCORES
from pipeline.data.rows import input_files
from pipeline.storage.location import folder_at
from pipeline.storage.outputs import atomic_file, check_output_file, refuse_overwriting
from pipeline.train.chains import GivenChain, LeftOutRows, given_chains
from pipeline.train.model import (
    SEPARATOR_KEY,
    context_of,
    device_here,
    end_logits,
    good_probabilities,
    load_tokenizer,
    silence_libraries,
    trained_model,
)
from pipeline.train.settings import ScoreConfig, unescaped_separator
from pipeline.train.text import EncodedChain, check_separator, encode_chain, encoder, pad_id_of

BLOCK_CHAINS = 2048
"""Number of chains that are sorted by length, scored and written together."""
Write = Callable[[pa.Table], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainScores:
    """The score of a chain by each aggregation. All are None if a step has no score, because that step might be decisive."""

    last: float | None = None
    min: float | None = None
    product: float | None = None
    mean: float | None = None

    def score_by(self, aggregation: Aggregation) -> float | None:
        """The score by the given aggregation."""
        return {
            Aggregation.last: self.last,
            Aggregation.min: self.min,
            Aggregation.product: self.product,
            Aggregation.mean: self.mean,
        }[aggregation]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """Counts of a scoring. `cut`: chains without a score because a step did not fit into the model. `left_out`: rows without a
    usable chain."""

    chains: int
    steps: int
    cut: int
    left_out: LeftOutRows


class Scorer:
    """A trained model with its tokenizer and the separator of its training."""

    def __init__(self, config: ScoreConfig) -> None:
        self._model = trained_model(config.model, device_here())
        self._tokenizer = load_tokenizer(config.model)
        self._separator = self._separator_of(config)
        self._batch_tokens = config.batch_tokens
        context = context_of(self._model.config, self._tokenizer)
        self._max_length = min(context, config.max_length or context)

    def step_scores(self, chains: Sequence[tuple[str, Sequence[str]]]) -> list[list[float | None]]:
        """P(good) of each step of each (problem, steps); None for steps that do not fit into the model."""
        encoded = [self._encoded(problem, steps) for problem, steps in chains]
        logits = end_logits(self._model, encoded, batch_tokens=self._batch_tokens, pad_id=pad_id_of(self._tokenizer))
        return [
            [*good_probabilities(rows), *[None] * chain.left_out] for rows, chain in zip(logits, encoded, strict=True)
        ]

    def _encoded(self, problem: str, steps: Sequence[str]) -> EncodedChain:
        return encode_chain(
            encoder(self._tokenizer),
            problem,
            steps,
            separator=self._separator,
            bos=self._tokenizer.bos_token_id,
            max_length=self._max_length,
        )

    def _separator_of(self, config: ScoreConfig) -> str:
        recorded = getattr(self._model.config, SEPARATOR_KEY, None)
        if config.separator is None and recorded is None:
            raise UsageError(
                f"the config.json of {config.model} has no {SEPARATOR_KEY}: give separator=..., the text after each step in "
                "training"
            )
        separator = str(recorded) if config.separator is None else unescaped_separator(config.separator)
        check_separator(self._tokenizer, separator)
        return separator


def score(config: ScoreConfig) -> Scored:
    """Score chains and write `config.out` as a whole or not at all.

    Raises UsageError for an unusable model, run or output, InputError if there is no chain, and StoreError.
    """
    silence_libraries()
    out = Path(config.out).expanduser()
    if out.suffix not in _WRITERS:
        raise UsageError(f"out={config.out} must end in {' or '.join(_WRITERS)}")
    check_output_file("out", out)
    refuse_overwriting({"out": out}, [folder_at(config.run_dir)] if config.run_dir else input_files(config.data.path))
    left_out = LeftOutRows()
    chains = given_chains(config, left_out)
    scorer = Scorer(config)
    counted = steps = cut = 0
    with _WRITERS[out.suffix](out) as write:
        while block := list(islice(chains, BLOCK_CHAINS)):
            rows = _rows(block, scorer, config)
            write(pa.Table.from_pylist(rows, schema=SCORES))
            counted += len(rows)
            steps += sum(row["n_scored"] for row in rows)
            cut += sum(row["score"] is None for row in rows)
        if not counted:
            first = f"; the first of {left_out.rows:,} rows: {left_out.first}" if left_out.rows else ""
            raise InputError(f"{config.run_dir or config.data.path} holds no chain to score{first}")
    return Scored(chains=counted, steps=steps, cut=cut, left_out=left_out)


def chain_scores(step_scores: Sequence[float | None]) -> ChainScores:
    """The scores of a chain from its step scores in [0, 1]."""
    scores = [score for score in step_scores if score is not None]
    if not scores or len(scores) < len(step_scores):
        return ChainScores()
    return ChainScores(
        last=scores[-1], min=min(scores), product=math.prod(scores), mean=math.fsum(scores) / len(scores)
    )


def _rows(chains: Sequence[GivenChain], scorer: Scorer, config: ScoreConfig) -> list[dict[str, Any]]:
    scored = scorer.step_scores([(chain.problem, chain.steps) for chain in chains])
    return [_row(chain, scores, config) for chain, scores in zip(chains, scored, strict=True)]


def _row(chain: GivenChain, step_scores: Sequence[float | None], config: ScoreConfig) -> dict[str, Any]:
    whole = chain_scores(step_scores)
    return {
        **dataclasses.asdict(chain),
        "step_scores": list(step_scores),
        "n_scored": sum(score is not None for score in step_scores),
        **{f"score_{name}": value for name, value in dataclasses.asdict(whole).items()},
        "score": whole.score_by(config.aggregation),
        "model": config.model,
    }


@contextmanager
def _parquet(out: Path) -> Iterator[Write]:
    with atomic_file(out) as file, pq.ParquetWriter(file, SCORES, compression="zstd") as writer:
        yield writer.write_table


@contextmanager
def _jsonl(out: Path) -> Iterator[Write]:
    with atomic_file(out) as file:

        def write(table: pa.Table) -> None:
            for row in table.to_pylist():
                file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

        yield write


_WRITERS = {".parquet": _parquet, ".jsonl": _jsonl}
