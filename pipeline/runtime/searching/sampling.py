"""Samples of many searches from one policy engine: each is one request, or several until the whole step is written.

Requests of all problems that come up in one turn of the event loop go to the engine together.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pipeline.core.records import Completion, Finish, Prefix, Problem, Request
from pipeline.core.tables import storable
from pipeline.data.prompts import TokenCut
from pipeline.engines.base import Engine
from pipeline.engines.vllm.detokenize import Decode
from pipeline.graders.base import Ending
from pipeline.runtime.sampling import sample_batches
from pipeline.runtime.searching.pieces import CHUNK, StepCutter
from pipeline.searches.base import WHOLE, Node, Sample, path_of
from pipeline.searches.log import SampleAnswer

Take = Callable[[Completion], None]
"""What is done with a completion."""
Died = Callable[[BaseException], None]
"""What is done with the error of an engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The longest chain in tokens and in steps, and the policy's context in tokens."""

    max_tokens: int
    max_steps: int
    context: int


@dataclass(slots=True, kw_only=True)
class Written:
    """A sample while the policy writes it. `prompt_ids`: of the bare problem. `before`: the tokens of the chain so far, `stem`
    its text. `began`: when it was asked for, in seconds of any clock. `answer`: what is written so far, as far as this module
    knows it: without the final answer and its verdict."""

    ask: Sample
    problem: Problem
    prompt_ids: tuple[int, ...]
    before: tuple[int, ...]
    stem: str
    limits: Limits
    began: float
    token_ids: tuple[int, ...] = ()
    text: str = ""
    requests: int = 0
    n_prompt_tokens: int = 0
    n_tokens: int = 0

    @property
    def left(self) -> int:
        """Tokens that may still be generated."""
        written = len(self.before) + len(self.token_ids)
        return min(self.limits.max_tokens - written, self.limits.context - len(self.prompt_ids) - written)

    def request(self, cutter: StepCutter) -> Request:
        """What the engine is asked next. Only with tokens `left`."""
        by_steps = self._by_steps(cutter)
        prompt = (*self.prompt_ids, *self.before, *self.token_ids)
        node = self.ask.node
        request = Request(
            request_id=f"{self.ask.key}-{self.requests:05d}",
            issue_index=self.ask.draw,
            problem=self.problem,
            prefix=Prefix(prefix_id=node.node_id, step_index=node.depth, text=self.stem + self.text, prompt_ids=prompt),
            stop=cutter.stops if by_steps else (),
            max_tokens=min(self.left, CHUNK) if by_steps and not cutter.stops else self.left,
        )
        self.requests += 1
        self.n_prompt_tokens += len(prompt)
        return request

    def take(
        self, completion: Completion, cutter: StepCutter, decode: Decode, ending: Ending | None, now: float
    ) -> SampleAnswer | None:
        """Go on with a completion. The answer, or None where another request must follow."""
        finish, by_steps = completion.finish, self._by_steps(cutter)
        self.token_ids += completion.token_ids
        self.n_tokens += completion.n_tokens
        self.text, cut = cutter.cut((*self.prompt_ids, *self.before), self.token_ids, decode)
        stopped = finish is Finish.STOP and by_steps and cutter.stopped(self.text)
        ended = not stopped and (finish is not Finish.LENGTH or self.left <= 0)
        most = self.limits.max_steps - self.ask.node.depth
        wanted = min(most, self.ask.steps) if by_steps else most
        complete = len(cut.ends) if ended else min(len(cut.ends), cutter.complete(self.text)) if by_steps else 0
        kept = min(wanted, complete)
        answered = (
            ending is not None and kept > 0 and ending.complete(f"{self.stem}{self.text[: cut.ends[kept - 1]]}\n")
        )
        if not ended and not answered and kept < wanted:
            return None
        if ended and kept == len(cut.ends):
            return self._answer(cut, kept, finish, now, ended=True)
        if answered:
            return self._answer(cut, kept, Finish.STOP, now, ended=True)
        if kept == most:
            return self._answer(cut, kept, Finish.LENGTH, now, ended=True)
        return self._answer(cut, kept, Finish.STOP, now, ended=False)

    def no_place(self, now: float) -> SampleAnswer:
        """The answer where no token is left."""
        full = len(self.before) >= self.limits.max_tokens
        cut = TokenCut(ends=(), token_ends=())
        return self._answer(cut, 0, Finish.LENGTH if full else Finish.TOO_LONG, now, ended=True)

    def _by_steps(self, cutter: StepCutter) -> bool:
        return self.ask.steps != WHOLE and not cutter.whole_chains

    def _answer(self, cut: TokenCut, kept: int, finish: Finish, now: float, *, ended: bool) -> SampleAnswer:
        node = self.ask.node
        return SampleAnswer(
            sample_id=self.ask.key,
            node_id=node.node_id,
            draw=self.ask.draw,
            steps=self.ask.steps,
            number=node.depth,
            text=storable(self.text[: cut.ends[kept - 1]]) if kept else "",
            token_ids=self.token_ids[: cut.token_ends[kept - 1]] if kept else (),
            step_ends=cut.ends[:kept],
            token_ends=cut.token_ends[:kept],
            finish=finish,
            ended=ended,
            n_tokens=self.n_tokens,
            n_prompt_tokens=self.n_prompt_tokens,
            took=now - self.began,
        )


class Sampler:
    """Sends requests to the engine. `open`: requests without a completion. `counted` is called when their number changes, and
    `died` with the error of an engine that stops working."""

    def __init__(self, engine: Engine, counted: Callable[[], None], died: Died) -> None:
        self._engine = engine
        self._counted = counted
        self._died = died
        self._new: list[tuple[Request, Take]] = []
        self._calls: set[asyncio.Task[None]] = set()
        self.open = 0

    def ask(self, request: Request, take: Take) -> None:
        """Ask for a completion, for which `take` is called."""
        if not self._new:
            asyncio.get_running_loop().call_soon(self._send)
        self._new.append((request, take))
        self.open += 1

    def close(self) -> None:
        """Wait for no more completions."""
        for call in self._calls:
            call.cancel()

    def _send(self) -> None:
        new, self._new = self._new, []
        # Samples of a node are adjacent, so that the engine computes their prompt once.
        new.sort(key=lambda each: (each[0].prefix.prefix_id, each[0].request_id))
        self._counted()
        call = asyncio.create_task(self._call(new))
        self._calls.add(call)
        call.add_done_callback(self._ended)

    async def _call(self, new: list[tuple[Request, Take]]) -> None:
        taking = {request.request_id: take for request, take in new}
        try:
            async for batch in sample_batches(self._engine, [request for request, _ in new], keep_tokens=True):
                self.open -= len(batch)
                for completion in batch:
                    taking.pop(completion.request.request_id)(completion)
                self._counted()
        finally:
            self.open -= len(taking)
            self._counted()

    def _ended(self, call: "asyncio.Task[None]") -> None:
        self._calls.discard(call)
        if not call.cancelled() and (error := call.exception()) is not None:
            self._died(error)


def chain_tokens(
    node: Node, tokens: Mapping[str, tuple[int, ...]], given: Mapping[str, tuple[int, ...]]
) -> tuple[int, ...]:
    """The tokens of a chain. `tokens`: those of each node's last step. `given`: those of whole chains, for nodes of a chain
    that the input has."""
    parts: list[tuple[int, ...]] = []
    for at in reversed(path_of(node)):
        if at.node_id in given:
            parts.append(given[at.node_id])
            break
        parts.append(tokens[at.node_id])
    return tuple(token for part in reversed(parts) for token in part)
