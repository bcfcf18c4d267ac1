"""`python -m tests.tiny.truth`: sample chains from the tiny policy and measure the value of every prefix, for `truth.jsonl`.

A row is a chain as `label` reads it (`id`, `problem`, `answer`, `steps`), its `outcome`, and for each prefix of
k = 0 .. K steps how many of `n` rollouts were right (`correct`), how many could not be graded (`ungraded`), and how many
tokens one took in the mean (`tokens`). The last prefix is the whole chain: nothing is sampled behind its answer, so `n` or 0
are right by the outcome, in 0 tokens.

Chains are the policy's own first draws for exercises of a fixed seed, whatever their outcome: over them, values are a
martingale. Left out are draws that state no answer in their last line, and those of more than `MAX_STEPS` steps. A row is
written when it is measured; an interrupted file has fewer whole rows.
"""

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.__main__ import compose_label
from pipeline.config.label import LabelConfig
from pipeline.core.ids import rollout_id
from pipeline.core.records import (
    UNGRADED,
    Completion,
    Finish,
    InputRow,
    Prefix,
    Problem,
    Reject,
    Request,
    RowLocation,
    Verdict,
)
from pipeline.data.problems import read_row
from pipeline.data.prompts import Prompter
from pipeline.engines.base import Engine, Surroundings
from pipeline.engines.registry import open_engine
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.graders.registry import checker_for
from tests.tiny.arithmetic import Exercise, random_exercise
from tests.tiny.policy import OVERRIDES, TRUTH

CHAINS = 24
ROLLOUTS = 2_000
SEED = 7
MAX_STEPS = 6
CPUS = 1
"""The model is so small that its threads wait for each other longer than they compute on a machine with other work."""

Row = dict[str, object]


async def main() -> None:
    config = compose_label([*OVERRIDES, f"data.path={TRUTH}", "run_dir=unused"])
    engine = open_engine(config.policy, config.sampling, around=Surroundings(cpus=CPUS))
    await engine.start()
    try:
        with checker_for(config.grader) as checker:
            bench = Bench(config=config, engine=engine, checker=checker)
            rows = await _chains(bench)
            began, drawn_before = time.monotonic(), engine.work.generated
            with TRUTH.open("w", encoding="utf-8") as file:
                for number, row in enumerate(rows, start=1):
                    measured = row | await bench.measured(row)
                    file.write(json.dumps(measured) + "\n")
                    file.flush()
                    print(f"{number} of {CHAINS}: {row['problem']} {measured['correct']}", flush=True)
            seconds, tokens = time.monotonic() - began, engine.work.generated - drawn_before
    finally:
        await engine.close()
    print(f"{tokens:,} tokens in {seconds:.0f} s: {tokens / seconds:,.0f} a second")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The real engine and checker under the settings of `label`."""

    config: LabelConfig
    engine: Engine
    checker: Checker

    async def draw(self, exercise: Exercise) -> Row | None:
        """A chain of the policy as a row of the input, with its outcome; None where it is to be left out."""
        asked: Row = {"id": exercise.problem, "problem": exercise.problem, "answer": str(exercise.answer)}
        problem = self._read(asked).problem
        (drawn,) = await self._sampled(problem, [self._prompter().root(problem)], 1)
        steps = drawn.text.split("\n")
        answer = self.checker.stated_answer(drawn.text)
        if answer is None or drawn.finish is not Finish.STOP or not _is_a_chain(steps, answer):
            return None
        return asked | {"steps": steps, "outcome": outcome_of(self.checker.grade_answer(problem.golds, answer))}

    async def measured(self, row: Row) -> Row:
        """What `ROLLOUTS` rollouts of every prefix of a chain come to, as columns for its row."""
        read = self._read(row)
        assert read.solution is not None
        root = self._prompter().root(read.problem)
        whole = len(read.solution.ends)
        prefixes = [root, *self._prompter().prefixes(root, read.solution)[: whole - 1]]
        completions = await self._sampled(read.problem, prefixes, ROLLOUTS)
        correct, ungraded, tokens = [0] * whole, [0] * whole, [0] * whole
        for completion in completions:
            tokens[completion.request.prefix.step_index] += completion.n_tokens
        for (k, text, finish), count in Counter(map(_answered, completions)).items():
            golds = read.problem.golds
            grade = grade_at_once(self.checker, golds, text, finish) or grade_in_time(self.checker, golds, text, finish)
            correct[k] += count if grade.verdict is Verdict.CORRECT else 0
            ungraded[k] += count if grade.verdict in UNGRADED else 0
        return {
            "n": ROLLOUTS,
            "correct": [*correct, ROLLOUTS if row["outcome"] else 0],
            "ungraded": [*ungraded, 0],
            "tokens": [*(total / ROLLOUTS for total in tokens), 0.0],
        }

    def _prompter(self) -> Prompter:
        return Prompter(
            tokenizer=self.engine.tokenizer,
            config=self.config.policy.prompt,
            max_tokens=self.config.sampling.max_tokens,
            max_model_len=self.engine.max_model_len,
        )

    def _read(self, row: Row) -> InputRow:
        read = read_row(row, RowLocation(file=TRUTH.name, line=1), self.config.data, self.checker.stated_answer)
        if isinstance(read, Reject):
            raise ValueError(read.detail)
        return read

    async def _sampled(self, problem: Problem, prefixes: Sequence[Prefix], count: int) -> list[Completion]:
        requests = [
            Request(request_id=rollout_id(prefix.prefix_id, issue), issue_index=issue, problem=problem, prefix=prefix)
            for prefix in prefixes
            for issue in range(count)
        ]
        return [completion async for group in self.engine.generate(requests) for completion in group]


async def _chains(bench: Bench) -> list[Row]:
    """The first `CHAINS` draws, each for another exercise."""
    rng = random.Random(SEED)
    rows: dict[str, Row] = {}
    while len(rows) < CHAINS:
        exercise = random_exercise(rng)
        row = await bench.draw(exercise)
        if row is not None:
            rows.setdefault(exercise.problem, row)
    return list(rows.values())


def _is_a_chain(steps: Sequence[str], answer: str) -> bool:
    return all(steps) and len(steps) <= MAX_STEPS and steps[-1] == f"#{answer}"


def _answered(completion: Completion) -> tuple[int, str, Finish]:
    """The steps that a completion continues, the text to be judged, and how it ended."""
    prefix = completion.request.prefix
    return prefix.step_index, prefix.text + completion.text, completion.finish


if __name__ == "__main__":
    asyncio.run(main())
