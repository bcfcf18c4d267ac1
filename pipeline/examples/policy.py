"""A policy of your own, the dullest there is: it repeats the last line of its prompt.

    python -m pipeline.examples.policy

labels a chain with it in the folder `echo`. A policy may call whatever writes texts: a library, a server, a program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pipeline import label
from pipeline.config.fields import BY_GROUP
from pipeline.config.label import PolicyConfig, SamplingConfig
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import BatchEngine, Engine, Policy, PolicyFacts, Surroundings
from pipeline.engines.oracle import ByteTokenizer
from pipeline.graders.base import Ending


@dataclass(kw_only=True, slots=True)
class EchoConfig(PolicyConfig):
    kind: Annotated[str, BY_GROUP] = "echo"
    prefix: str = "The answer is "


class EchoEngine(BatchEngine):
    def __init__(self, settings: EchoConfig) -> None:
        super().__init__(ByteTokenizer(), policy="echo", max_model_len=100_000)
        self._prefix = settings.prefix

    async def complete(self, requests: Sequence[Request]) -> list[Completion]:
        texts = [self._prefix + (request.prefix.text.splitlines() or ["nothing"])[-1] for request in requests]
        return [
            Completion(request=request, text=text, finish=Finish.STOP, n_tokens=len(text))
            for request, text in zip(requests, texts, strict=True)
        ]


class Echo(Policy):
    Config = EchoConfig
    settings: EchoConfig

    def engine(self, sampling: SamplingConfig, ending: Ending | None, around: Surroundings) -> Engine:
        return EchoEngine(self.settings)

    async def facts(self, sampling: SamplingConfig) -> PolicyFacts:
        return EchoEngine(self.settings)


ROWS = [{"problem": "How many days has a week?", "answer": "7", "steps": ["5", "7", "The answer is 7."]}]


def main() -> None:
    """Label with a policy that only knows what it has just read."""
    run = label(ROWS, policy=Echo(EchoConfig(prefix="The answer is ")), estimator="fixed", run_dir="echo")
    print(run.rollouts().select("step_index", "text", "verdict").unique(maintain_order=True))
    print(run.labels().select("steps", "value"))


if __name__ == "__main__":
    main()
