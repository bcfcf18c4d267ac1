"""Chains and rollouts that are drawn once, and that every arm of the experiment takes its own from.

A pool has parts, each of other problems and each with a file, so that a pool that was interrupted goes on with the next part. A
prefix is named by its text: the problem and the steps so far, each with its line end.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from pipeline.config.choices import Splitter
from pipeline.data.steps import split
from tests.bench.loop.sampler import Sampler
from tests.tiny.arithmetic import ALPHABET, Exercise
from tests.tiny.policy import MAX_TOKENS

_CHARACTERS = {character: number for number, character in enumerate(f"?{ALPHABET}", start=1)}
"""Token ids of the policy's tokenizer: 0 is the end, and 1, unknown characters, is drawn too, if seldom."""
_NAMES = {number: character for character, number in _CHARACTERS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPart:
    """Draws of the policy for some exercises. `draws`: per problem its chains as texts, in the order of the draws. `rollouts`:
    per prefix the completions, in the order of issue."""

    exercises: tuple[Exercise, ...]
    draws: Mapping[str, tuple[str, ...]]
    rollouts: Mapping[str, tuple[str, ...]]


def prefixes_of(problem: str, text: str) -> Iterator[str]:
    """The prefixes of a chain that rollouts continue: the bare problem first, and not the whole chain."""
    ends = split(text, Splitter.newline)
    for end in (0, *ends[:-1]):
        yield f"{problem}\n{text[:end]}"


def pool_part(
    file: Path, of: Sequence[Exercise], *, draws: int, rollouts: int, seed: int, show: Callable[[str], None]
) -> PoolPart:
    """The part in `file`, which is drawn and written if it does not exist. `show` gets a line about that."""
    if not file.exists():
        show(_draw(file, of, draws=draws, rollouts=rollouts, seed=seed))
    table = pl.read_parquet(file)
    found: dict[bool, dict[str, tuple[str, ...]]] = {
        is_draw: dict(zip(rows["prefix"].to_list(), map(tuple, rows["completions"].to_list()), strict=True))
        for (is_draw,), rows in table.partition_by("is_draw", as_dict=True).items()
    }
    return PoolPart(exercises=tuple(of), draws=found[True], rollouts=found.get(False, {}))


def _draw(file: Path, of: Sequence[Exercise], *, draws: int, rollouts: int, seed: int) -> str:
    began, sampler = time.monotonic(), Sampler(seed)
    problems = [exercise.problem for exercise in of]
    chains = completions(sampler, [f"{problem}\n" for problem in problems], draws)
    prefixes = sorted(
        {prefix for problem in problems for text in chains[f"{problem}\n"] for prefix in prefixes_of(problem, text)}
    )
    continued = completions(sampler, prefixes, rollouts) if rollouts else {}
    rows = [
        *((problem, True, list(chains[f"{problem}\n"])) for problem in problems),
        *((prefix, False, list(completions)) for prefix, completions in continued.items()),
    ]
    new = file.with_suffix(".new")
    pl.DataFrame(rows, schema=["prefix", "is_draw", "completions"], orient="row").write_parquet(new)
    new.replace(file)
    return (
        f"{file.name}: {len(problems):,} problems, {len(continued):,} prefixes, {sampler.drawn_tokens:,} tokens in "
        f"{time.monotonic() - began:.0f} s"
    )


def completions(sampler: Sampler, prompts: Sequence[str], times: int) -> dict[str, tuple[str, ...]]:
    """`times` completions of each prompt."""
    ids = [[_CHARACTERS[character] for character in prompt] for prompt in prompts]
    return {
        prompts[place]: tuple("".join(map(_NAMES.__getitem__, text)) for text in texts)
        for place, texts in sampler.draw(ids, times)
    }


def is_cut(completion: str) -> bool:
    """Whether a completion has no end."""
    return len(completion) == MAX_TOKENS
