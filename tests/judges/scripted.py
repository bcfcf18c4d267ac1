"""An engine that writes what a test says, and judges and chains for it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from pipeline.core.ids import content_id
from pipeline.core.records import ChainText, Completion, Critique, Finish, Request
from pipeline.engines.base import BatchEngine, Engine, Surroundings, empty_completion
from pipeline.engines.oracle import ByteTokenizer
from pipeline.judges.base import wrong_critiques
from pipeline.judges.registry import open_judge
from pipeline.judges.settings import ModelJudgeConfig

Answer = Callable[[str, int], str]
"""(prompt, number of the vote) -> what the model writes. An empty text: the engine cannot serve the request."""
PROBLEM, STEPS = "What is 1 + 1 + 1?", ("1 + 1 = 2.", "2 + 1 = 4.", "The answer is 4.")


class Scripted(BatchEngine):
    """Writes what a function says. Prompts are bytes, so they can be read again."""

    def __init__(self, answer: Answer, *, max_model_len: int = 100_000, finish: Finish = Finish.STOP) -> None:
        super().__init__(ByteTokenizer(), policy="scripted", max_model_len=max_model_len)
        self._answer = answer
        self._finish = finish
        self.prompts: list[str] = []

    async def complete(self, requests: Sequence[Request]) -> Sequence[Completion]:
        return [self._completed(request) for request in requests]

    def _completed(self, request: Request) -> Completion:
        prompt = bytes(request.prefix.prompt_ids).decode()
        self.prompts.append(prompt)
        text = self._answer(prompt, request.issue_index)
        if not text:
            return empty_completion(request, Finish.ENGINE_FAILED)
        return Completion(request=request, text=text, finish=self._finish, n_tokens=len(text))


def always(text: str) -> Answer:
    return lambda prompt, vote: text


def chain(number: int = 0, *steps: str, problem: str = PROBLEM, golds: Sequence[str] = ()) -> ChainText:
    """A chain; without steps, the one of three steps of which the second is wrong."""
    steps = steps or STEPS
    return ChainText(
        chain_id=content_id(str(number)),
        problem_id=content_id("problem", str(number)),
        problem=problem,
        steps=steps,
        prefix_ids=tuple(content_id("prefix", str(number), str(at)) for at in range(len(steps))),
        golds=tuple(golds),
    )


def criticised(engine: Engine | Answer, *chains: ChainText, **own: Any) -> list[Sequence[Critique]]:
    """The critiques of each chain by a judge with these settings."""
    settings = ModelJudgeConfig(**{"name": "scripted", "votes": 1, "max_tokens": 64, **own})
    text_engine: Any = engine if hasattr(engine, "generate") else Scripted(engine)
    asked = chains or (chain(),)

    async def work() -> list[Sequence[Critique]]:
        judging = open_judge(settings, text_engine, Surroundings())
        await judging.start()
        try:
            return list(await asyncio.gather(*map(judging.critiques, asked)))
        finally:
            await judging.close()
            await judging.close()

    found = asyncio.run(asyncio.wait_for(work(), 30))
    for critiques, of in zip(found, asked, strict=True):
        assert not wrong_critiques(critiques, of, settings.votes)
    return found
