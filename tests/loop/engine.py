"""The tiny policy as an engine of this process, for searches of a bench: it starts at once, and samples more tokens per second
than vLLM does on a CPU.

Each completion follows from the seed and its request's id, so searches that ask the same get the same answer, which is sampled
once.
"""

import asyncio
from collections.abc import Sequence

import numpy as np
import torch

from pipeline.core.ids import content_id
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import BatchEngine
from tests.loop.sampler import Sampler
from tests.tiny.policy import SHORT

ROWS = 512
"""Completions that are sampled together."""
WAITING = 1 << 16
"""Requests of a call: what comes together waits together, and other calls join."""
_DIGITS = 15


class TinyEngine(BatchEngine):
    """See the module. `tokenizer`: the policy's. `policy`: its identity."""

    def __init__(self, tokenizer: Tokenizer, seed: int, policy: str) -> None:
        super().__init__(tokenizer, policy=policy, max_model_len=SHORT.context, capacity=WAITING)
        self._seed = seed
        self._sampler = Sampler(seed)
        self._known: dict[Request, tuple[int, ...]] = {}
        self._asked: list[tuple[Request, asyncio.Future[tuple[int, ...]]]] = []
        self._works: asyncio.Task[None] | None = None

    async def complete(self, requests: Sequence[Request]) -> Sequence[Completion]:
        loop = asyncio.get_running_loop()
        found = [loop.create_future() for _ in requests]
        self._asked += zip(requests, found, strict=True)
        if self._works is None or self._works.done():
            self._works = loop.create_task(self._work_off())
        return [
            self._completion(request, ids) for request, ids in zip(requests, await asyncio.gather(*found), strict=True)
        ]

    async def _work_off(self) -> None:
        while self._asked:
            asked, self._asked = self._asked[:ROWS], self._asked[ROWS:]
            new = [request for request, _ in asked if request not in self._known]
            if new:
                self._known |= await asyncio.to_thread(self._sampled, new)
            for request, future in asked:
                if not future.cancelled():
                    future.set_result(self._known[request])

    def _sampled(self, requests: Sequence[Request]) -> dict[Request, tuple[int, ...]]:
        limits = [_limit(request) for request in requests]
        chances = np.zeros((len(requests), max(limits)))
        for row, request in enumerate(requests):
            key = int(content_id(str(self._seed), request.request_id)[:_DIGITS], 16)
            chances[row] = np.random.default_rng(key).random(max(limits))
        ends = [self.tokenizer.encode(request.stop[0])[0] if request.stop else None for request in requests]
        prompts = [request.prefix.prompt_ids for request in requests]
        found = self._sampler.continued(prompts, torch.from_numpy(chances), limits, ends)
        return {request: tuple(ids) for request, ids in zip(requests, found, strict=True)}

    def _completion(self, request: Request, ids: tuple[int, ...]) -> Completion:
        text = self.tokenizer.decode(ids)
        ended = ids[-1] == self._sampler.end or (bool(request.stop) and text.endswith(request.stop))
        return Completion(
            request=request,
            text=text,
            finish=Finish.STOP if ended else Finish.LENGTH,
            n_tokens=len(ids),
            token_ids=ids,
        )


def _limit(request: Request) -> int:
    """Tokens that a completion may have."""
    most = min(SHORT.max_tokens, SHORT.context - len(request.prefix.prompt_ids))
    return most if request.max_tokens is None else min(most, request.max_tokens)
