"""One implementation of each kind, as a user writes it in a notebook: `test_objects` runs this text as a main program."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import pyarrow as pa
from annotated_types import Interval

from pipeline import label, open_run
from pipeline.config.fields import BY_GROUP, RELABEL
from pipeline.config.label import EstimatorConfig, GraderConfig, PolicyConfig, SamplingConfig
from pipeline.core.records import ChainShape, Completion, Finish, Request, StepValue, Trials, Verdict
from pipeline.engines.base import BatchEngine, Engine, Policy, PolicyFacts, Surroundings
from pipeline.engines.oracle import ByteTokenizer
from pipeline.estimators import fixed
from pipeline.estimators.base import Estimator
from pipeline.estimators.tree import Tree
from pipeline.export.example import TrainingExample
from pipeline.export.formats.base import Format, FormatError, Marks, Row, no_steps, not_of_tokens
from pipeline.export.settings import TargetKind
from pipeline.graders.base import Ending, Grader

WORDS = ("yes", "no")


def first_round(share: float, rollouts: int) -> int:
    return max(1, round(share * rollouts))


@dataclass(kw_only=True, slots=True)
class HalvesConfig(EstimatorConfig):
    name: Annotated[str, RELABEL] = "halves"
    share: Annotated[float, Interval(gt=0, le=1)] = 0.5


class Halves(Estimator):
    Config = HalvesConfig
    settings: HalvesConfig
    replayable = True

    def next_rollouts(
        self, problems: Sequence[Tree], trials: Mapping[str, Trials], rollouts: int, state: Any
    ) -> list[dict[str, int]]:
        first = first_round(self.settings.share, rollouts)

        def owed(have: Trials) -> int:
            unanimous = len(set(have.outcomes)) == 1
            return max(0, (first if not have.outcomes or unanimous else rollouts) - len(have.outcomes))

        return fixed.per_prefix(problems, trials, owed)

    def values(self, chains: Sequence[ChainShape], trials: Mapping[str, Trials], state: Any) -> list[list[StepValue]]:
        own = self.settings
        return [
            fixed.chain_step_values(chain, trials, lambda have: fixed.posterior_value(have.counts, own), own)
            for chain in chains
        ]


@dataclass(kw_only=True, slots=True)
class EchoConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "echo"
    says: str = "yes"


class EchoEngine(BatchEngine):
    def __init__(self, says: str) -> None:
        super().__init__(ByteTokenizer(), policy=f"echo:{says}", max_model_len=100_000)
        self._says = says

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        return [
            Completion(request=request, text=self._says, finish=Finish.STOP, n_tokens=len(self._says))
            for request in requests
        ]


class Echo(Policy):
    Config = EchoConfig
    settings: EchoConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return EchoEngine(self.settings.says)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return EchoEngine(self.settings.says)


class YesNo(Grader):
    """Without settings of its own, and with a state."""

    def __init__(self, settings: GraderConfig, words: Sequence[str] = WORDS) -> None:
        super().__init__(settings)
        self.words = tuple(words)

    def extract(self, texts: Sequence[str], *, complete: bool) -> list[str | None]:
        said = [[word for word in text.lower().split() if word in self.words] for text in texts]
        return [words[-1] if words else None for words in said]

    def grade(self, golds: Sequence[Sequence[str]], answers: Sequence[str]) -> list[Verdict]:
        return [
            Verdict.CORRECT if answer in accepted else Verdict.INCORRECT
            for accepted, answer in zip(golds, answers, strict=True)
        ]

    def parses(self, golds: Sequence[str]) -> list[bool]:
        return [gold in self.words for gold in golds]


def _row(example: TrainingExample, _marks: Marks) -> Row:
    return {"problem": example.problem, "good": sum(target == 1 for target in example.targets)}


def _schema(_target: TargetKind) -> pa.Schema:
    columns: list[tuple[str, pa.DataType]] = [("problem", pa.string()), ("good", pa.int64())]
    return pa.schema(columns)


def _offences(example: TrainingExample, _marks: Marks) -> Iterator[FormatError]:
    return no_steps(example)


COUNTED = Format(
    targets=(TargetKind.hard,),
    row=_row,
    schema=_schema,
    offences=_offences,
    token_offences=not_of_tokens,
    ignores=True,
)

ROWS = [
    {"problem": f"Is {number} even? Say yes or no.", "answer": "yes" if number % 2 == 0 else "no",
     "steps": ["Look at the last digit.", f"It is {number % 10}.", "The answer is yes"]}
    for number in range(4)
]  # fmt: skip


def main() -> None:
    run_dir, out = sys.argv[1:]
    objects: dict[str, Any] = {
        "policy": Echo(EchoConfig(says="yes")),
        "estimator": Halves(HalvesConfig(share=0.25)),
        "grader": YesNo(GraderConfig()),
    }
    settings = {"run.report": False}
    run = label(ROWS, run_dir=run_dir, progress=False, **objects, **settings)
    again = label(ROWS, run_dir=run_dir, progress=False, **objects, **settings)
    assert again.summary is not None
    stated = {
        "recorded": run.settings,
        "rollouts": run.labels()["n_rollouts"].to_list(),
        "texts": run.rollouts()["text"].unique().to_list(),
        "verdicts": sorted(run.rollouts()["verdict"].unique().to_list()),
        "again": again.summary.rollouts_now,
        "sound": open_run(run_dir, **objects).audit().sound,
        "relabelled": run.relabel(**{"estimator.rule": "threshold"}).chains,
        "regraded": run.regrade(**{"grader.timeout_is": "ungraded"}).chains,
        "exported": run.export(COUNTED, out).chains,
    }
    print(json.dumps(stated))


if __name__ == "__main__":
    main()
