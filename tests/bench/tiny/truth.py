"""`python -m tests.bench.tiny.truth short | long`: sample chains from a tiny policy and measure the value of every prefix.

A row is a chain as `label` reads it (`id`, `problem`, `answer`, `steps`), its `outcome`, and for each prefix of
k = 0 .. K steps how many of `n` rollouts were right (`correct`), how many could not be graded (`ungraded`), and how many
tokens one took in the mean (`tokens`). The last prefix is the whole chain: nothing is sampled behind its answer, so `n` or 0
are right by the outcome, in 0 tokens.

Chains are the policy's own first draws for exercises of a fixed seed, whatever their outcome: over them, values are a
martingale. Left out are draws that state no answer in their last line, and those of more than `max_steps` steps: 8 % for long
chains, which are wrong more often than others. A row is written when it is measured; an interrupted file has fewer whole rows.

Rollouts are drawn by `sampler`, on one core; prompts and verdicts are those of `label`. A rollout that writes the next step of
its chain is one of the rollouts of the next prefix too, and only those that are still owed to it are drawn. So the errors of
values along a chain are correlated. (The rows for short chains were drawn by vLLM, every prefix for itself.)
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from transformers import LlamaForCausalLM

from pipeline.config.label import LabelConfig
from pipeline.core.records import UNGRADED, Finish, InputRow, Prefix, Problem, Reject, RowLocation, Verdict
from pipeline.data.problems import read_row
from pipeline.data.prompts import Prompter
from pipeline.engines.hugging_face import load_tokenizer
from pipeline.graders.base import Checker
from pipeline.graders.question import grade_at_once, grade_in_time, outcome_of
from pipeline.graders.registry import checker_for
from tests.bench.tiny.sampler import Sampler
from tests.settings import compose_label
from tests.tiny.arithmetic import Exercise, random_exercise
from tests.tiny.policy import POLICIES, TinyPolicy

CHAINS = 24
ROLLOUTS = 2_000
SEED = 7
THREADS = 1

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The chain so far with a completion, how that ended, and how many rollouts wrote it."""

    text: str
    finish: Finish
    count: int

    def tokens_after(self, prefix: Prefix) -> int:
        """A token is a character, or the end."""
        return len(self.text) - len(prefix.text) + (self.finish is Finish.STOP)


def main(policy: TinyPolicy) -> None:
    torch.set_num_threads(THREADS)
    config = compose_label([*policy.overrides, f"data.path={policy.truth}", "run_dir=unused"])
    with checker_for(config.grader) as checker, policy.truth.open("w", encoding="utf-8") as file:
        bench = Bench(
            policy=policy, config=config, checker=checker, prompter=_prompter(policy, config), sampler=_sampler(policy)
        )
        rows = _chains(bench)
        began = time.monotonic()
        for number, row in enumerate(rows, start=1):
            measured = row | bench.measured(row)
            file.write(json.dumps(measured) + "\n")
            file.flush()
            seconds = time.monotonic() - began
            print(f"{number} of {CHAINS}, {seconds:.0f} s: {row['problem']} {measured['correct']}", flush=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The policy, and prompts and checker under the settings of `label`."""

    policy: TinyPolicy
    config: LabelConfig
    checker: Checker
    prompter: Prompter
    sampler: Sampler

    def draw(self, exercise: Exercise) -> Row | None:
        """A chain of the policy as a row of the input, with its outcome; None where it is to be left out."""
        asked: Row = {"id": exercise.problem, "problem": exercise.problem, "answer": str(exercise.answer)}
        problem = self._read(asked).problem
        (drawn,) = self._sampled(self.prompter.root(problem), 1)
        steps = drawn.text.split("\n")
        answer = self.checker.stated_answer(drawn.text)
        if answer is None or drawn.finish is not Finish.STOP or not self._is_a_chain(steps, answer):
            return None
        return asked | {"steps": steps, "outcome": outcome_of(self.checker.grade_answer(problem.golds, answer))}

    def measured(self, row: Row) -> Row:
        """What `ROLLOUTS` rollouts of every prefix of a chain come to, as columns for its row."""
        read = self._read(row)
        assert read.solution is not None
        root = self.prompter.root(read.problem)
        prefixes = [root, *self.prompter.prefixes(root, read.solution)[:-1]]
        verdicts, tokens = [], []
        completions: list[Written] = []
        for prefix in prefixes:
            completions = [each for each in completions if each.text.startswith(prefix.text)]
            completions += self._sampled(prefix, ROLLOUTS - sum(each.count for each in completions))
            verdicts.append(self._judged(read.problem, completions))
            tokens.append(sum(each.tokens_after(prefix) * each.count for each in completions) / ROLLOUTS)
        return {
            "n": ROLLOUTS,
            "correct": [*(each[Verdict.CORRECT] for each in verdicts), ROLLOUTS if row["outcome"] else 0],
            "ungraded": [*(sum(each[verdict] for verdict in UNGRADED) for each in verdicts), 0],
            "tokens": [*tokens, 0.0],
        }

    def _judged(self, problem: Problem, completions: Sequence[Written]) -> Counter[Verdict]:
        found: Counter[Verdict] = Counter()
        for each in completions:
            asked = self.checker, problem.golds, each.text, each.finish
            found[(grade_at_once(*asked) or grade_in_time(*asked)).verdict] += each.count
        return found

    def _read(self, row: Row) -> InputRow:
        location = RowLocation(file=self.policy.truth.name, line=1)
        read = read_row(row, location, self.config.data, self.checker.stated_answer)
        if isinstance(read, Reject):
            raise ValueError(read.detail)
        return read

    def _sampled(self, prefix: Prefix, count: int) -> Iterator[Written]:
        drawn = self.sampler.sampled(prefix.prompt_ids, count, self.config.sampling.max_tokens)
        for completion, times in drawn.items():
            yield Written(
                text=prefix.text + self.prompter.tokenizer.decode(completion.tokens),
                finish=Finish.STOP if completion.ended else Finish.LENGTH,
                count=times,
            )

    def _is_a_chain(self, steps: Sequence[str], answer: str) -> bool:
        return all(steps) and len(steps) <= self.policy.max_steps and steps[-1] == f"#{answer}"


def _prompter(policy: TinyPolicy, config: LabelConfig) -> Prompter:
    return Prompter(
        tokenizer=load_tokenizer(str(policy.asset), None),
        config=config.policy.prompt,
        max_tokens=config.sampling.max_tokens,
        max_model_len=policy.context,
    )


def _sampler(policy: TinyPolicy) -> Sampler:
    model = LlamaForCausalLM.from_pretrained(policy.asset, dtype=torch.float32).eval()
    return Sampler(model=model, end=model.config.eos_token_id, rng=np.random.default_rng(SEED))


def _chains(bench: Bench) -> list[Row]:
    """The first `CHAINS` draws, each for another exercise."""
    rng = random.Random(SEED)
    rows: dict[str, Row] = {}
    while len(rows) < CHAINS:
        exercise = random_exercise(rng, bench.policy.size)
        row = bench.draw(exercise)
        if row is not None:
            rows.setdefault(exercise.problem, row)
    return list(rows.values())


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in POLICIES:
        raise SystemExit(f"usage: python -m tests.bench.tiny.truth {' | '.join(POLICIES)}")
    main(POLICIES[sys.argv[1]])
