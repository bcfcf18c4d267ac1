"""The tiny policy as an engine of this process, for searches of a bench: it starts at once, and samples more tokens per second
than vLLM does on a CPU.

Each completion follows from the seed and its request's id, so searches that ask the same get the same answer, which is sampled
once. Probabilities of tokens are computed once for each text before them: chains of a problem have much in common.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from pipeline.core.ids import content_id
from pipeline.core.records import Completion, Finish, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.base import BatchEngine
from tests.bench.loop.sampler import Sampler, Sums
from tests.tiny.policy import SHORT

ROWS = 512
"""Completions that are sampled together."""
CAPACITY = 2 * ROWS
"""Requests of a call that wait together. Other calls join them."""
_DIGITS = 15


@dataclass(slots=True, kw_only=True)
class _Written:
    """A completion while it is sampled. `limit`: its longest length. `stop`: a token that ends it. `chances`: numbers from
    [0, 1) that decide its tokens. `ended`: it needs no more of them."""

    prompt: tuple[int, ...]
    limit: int
    stop: int | None
    chances: Sums
    tokens: list[int] = field(default_factory=list)
    ended: bool = False


class TinyEngine(BatchEngine):
    """See the module. `tokenizer`: the policy's. `policy`: its identity."""

    def __init__(self, tokenizer: Tokenizer, seed: int, policy: str) -> None:
        super().__init__(tokenizer, policy=policy, max_model_len=SHORT.context, capacity=CAPACITY)
        self._seed = seed
        self._sampler = Sampler()
        self._sums: dict[bytes, Sums] = {}
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
        written = [self._begun(request) for request in requests]
        left = [each for each in written if not each.ended]
        if left:
            most = max(each.limit - len(each.tokens) for each in left)
            chances = np.zeros((len(left), most))
            for row, each in enumerate(left):
                rest = each.chances[len(each.tokens) :]
                chances[row, : len(rest)] = rest
            found = self._sampler.continued(
                [(*each.prompt, *each.tokens) for each in left],
                torch.from_numpy(chances),
                [each.limit - len(each.tokens) for each in left],
                [each.stop for each in left],
            )
            for each, (tokens, sums) in zip(left, found, strict=True):
                for token, sums_of in zip(tokens, sums, strict=True):
                    self._sums.setdefault(bytes((*each.prompt, *each.tokens)), sums_of)
                    each.tokens.append(token)
        return {request: tuple(each.tokens) for request, each in zip(requests, written, strict=True)}

    def _begun(self, request: Request) -> "_Written":
        """The completion as far as the probabilities of its tokens are known."""
        limit = _limit(request)
        key = int(content_id(str(self._seed), request.request_id)[:_DIGITS], 16)
        written = _Written(
            prompt=request.prefix.prompt_ids,
            limit=limit,
            stop=self.tokenizer.encode(request.stop[0])[0] if request.stop else None,
            chances=np.random.default_rng(key).random(limit),
        )
        text = bytearray(written.prompt)
        while not written.ended and (sums := self._sums.get(bytes(text))) is not None:
            token = int(np.searchsorted(sums, written.chances[len(written.tokens)] * sums[-1]))
            written.tokens.append(token)
            text.append(token)
            written.ended = token in (self._sampler.end, written.stop) or len(written.tokens) == limit
        return written

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
    most = min(SHORT.max_tokens, SHORT.context - len(request.prefix.prompt_ids))
    return most if request.max_tokens is None else min(most, request.max_tokens)
