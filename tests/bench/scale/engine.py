"""An engine on a virtual clock: continuous batching at the speed of the roofline, an event per step in which something ends.

Places for sequences are taken in the order of issue, between two steps. A sequence's prompt is computed first, but for what the
prefix cache holds, while all others wait; then it takes a decode step per token. Between events nothing changes but that every
context grows, so the time of many steps has a closed form. What the engine answers somebody else decides.

Not covered: memory for keys and values (places are the only limit), steps that decode and prefill at once, and whatever keeps a
real engine below its roofline.
"""

import asyncio
import heapq
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field

from pipeline.core.hardware import Hardware
from pipeline.core.progress import EngineWork, Load
from pipeline.core.records import Completion, Finish, Request
from pipeline.engines.base import empty_completion
from pipeline.engines.oracle import ByteTokenizer
from tests.bench.scale.cache import PrefixCache
from tests.bench.scale.pace import Pace

_CONTEXT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the policy says to a request: `tokens` of the clock, whatever the length of its text."""

    text: str
    tokens: int
    finish: Finish = Finish.STOP


@dataclass(slots=True, eq=False)
class _Call:
    """One `generate`: what has come of it, and how many completions are still to come."""

    left: int
    keep_tokens: bool
    came: list[Completion] = field(default_factory=list)
    some: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(slots=True, eq=False)
class _Sequence:
    call: _Call
    request: Request
    reply: Reply
    begun_at: int = 0


class VirtualEngine:
    """See the module; runs on a `VirtualLoop`. Implements `Engine`. `capacity`: places for sequences."""

    def __init__(self, pace: Pace, reply: Callable[[Request], Reply], *, capacity: int, cache_blocks: int) -> None:
        self._pace = pace
        self._reply = reply
        self._cache = PrefixCache(cache_blocks)
        self._waiting: deque[_Sequence] = deque()
        self._running: list[tuple[int, int, _Sequence]] = []
        self._aborted: set[str] = set()
        self._outstanding: set[str] = set()
        self._order = 0
        self._context = 0
        self._steps = 0
        self._work = EngineWork()
        self._counted_until = 0.0
        self._decoding_since = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next: asyncio.TimerHandle | None = None
        self._next_steps = 0
        self.tail_seconds = 0.0
        """The part of `unfilled_seconds` that lies behind the last moment at which all places were taken."""
        self.tokenizer = ByteTokenizer()
        self.max_model_len = _CONTEXT
        self.capacity = capacity
        self.hardware: Hardware | None = None
        self.policy = f"virtual:{pace.name}"

    @property
    def load(self) -> Load:
        return Load(running=len(self._running), waiting=len(self._waiting))

    @property
    def work(self) -> EngineWork:
        self._count()
        return self._work

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._counted_until = self._now()

    async def generate(
        self, requests: Sequence[Request], *, keep_tokens: bool = False
    ) -> AsyncIterator[Sequence[Completion]]:
        self._count()
        call = _Call(left=len(requests), keep_tokens=keep_tokens)
        self._waiting.extend(_Sequence(call, request, self._reply(request)) for request in requests)
        self._outstanding.update(request.request_id for request in requests)
        self._look_soon()
        try:
            while call.left:
                await call.some.wait()
                call.some.clear()
                batch, call.came = call.came, []
                call.left -= len(batch)
                yield batch
        finally:
            if call.left:
                self.abort([request.request_id for request in requests])

    def abort(self, request_ids: Iterable[str]) -> None:
        if wanted := self._outstanding.intersection(request_ids):
            self._aborted |= wanted
            self._look_soon(whatever=True)

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _look_soon(self, *, whatever: bool = False) -> None:
        """Bring the next event forward to the end of the step under way, if there is a place to fill or, else, `whatever`."""
        if len(self._running) >= self.capacity and not whatever:
            return
        steps = 0
        if self._running:
            since = self._now() - self._decoding_since
            steps = self._pace.steps_within(len(self._running), self._context, since, self._next_steps)
        if self._next is None or steps < self._next_steps:
            self._schedule(steps)

    def _schedule(self, steps: int) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next_steps = steps
        seconds = self._pace.decode_seconds(len(self._running), self._context, steps)
        at = max(self._now(), self._decoding_since + seconds)
        self._next = asyncio.get_running_loop().call_at(at, self._event)

    def _event(self) -> None:
        """Between two steps: what has ended leaves, what waits comes in, and the steps up to the next end are begun."""
        self._next = None
        self._count()
        self._step(self._next_steps)
        self._leave()
        prefilled = self._come_in()
        self._decoding_since = self._now() + self._pace.prefill_seconds(prefilled)
        if self._running:
            self._schedule(self._running[0][0] - self._steps)

    def _step(self, steps: int) -> None:
        tokens = steps * len(self._running)
        self._steps += steps
        self._context += tokens
        self._work += EngineWork(generated=tokens, steps=steps if tokens else 0)

    def _leave(self) -> None:
        while self._running and self._running[0][0] <= self._steps:
            self._end(heapq.heappop(self._running)[2])
        if not self._aborted:
            return
        gone = [each for _, _, each in self._running if each.request.request_id in self._aborted]
        self._running = [entry for entry in self._running if entry[2].request.request_id not in self._aborted]
        heapq.heapify(self._running)
        for sequence in gone:
            self._context -= len(sequence.request.prefix.prompt_ids) + self._steps - sequence.begun_at
        gone += [each for each in self._waiting if each.request.request_id in self._aborted]
        self._waiting = deque(each for each in self._waiting if each.request.request_id not in self._aborted)
        self._aborted.clear()
        for sequence in gone:
            self._deliver(sequence, empty_completion(sequence.request, Finish.ABORT))

    def _end(self, sequence: _Sequence) -> None:
        reply, prompt = sequence.reply, len(sequence.request.prefix.prompt_ids)
        self._context -= prompt + reply.tokens
        attended = reply.tokens * prompt + reply.tokens * (reply.tokens - 1) // 2
        self._work += EngineWork(finished=reply.tokens, attended=attended)
        completion = Completion(
            request=sequence.request,
            text=reply.text,
            finish=reply.finish,
            n_tokens=reply.tokens,
            token_ids=tuple(self.tokenizer.encode(reply.text)) if sequence.call.keep_tokens else (),
        )
        self._deliver(sequence, completion)

    def _deliver(self, sequence: _Sequence, completion: Completion) -> None:
        self._outstanding.discard(sequence.request.request_id)
        sequence.call.came.append(completion)
        sequence.call.some.set()

    def _come_in(self) -> int:
        """Fill free places; how many tokens of prompts that takes."""
        prompted = computed = 0
        while self._waiting and len(self._running) < self.capacity:
            sequence = self._waiting.popleft()
            prefix = sequence.request.prefix
            sequence.begun_at = self._steps
            self._order += 1
            heapq.heappush(self._running, (self._steps + sequence.reply.tokens, self._order, sequence))
            self._context += len(prefix.prompt_ids)
            prompted += len(prefix.prompt_ids)
            computed += self._cache.computed(prefix.prefix_id, prefix.prompt_ids)
        self._work += EngineWork(prompt=prompted, prefilled=computed)
        return computed

    def _count(self) -> None:
        """Count what stood empty since the last change, if nothing waited."""
        now, share = self._now(), len(self._running) / self.capacity
        unfilled, self._counted_until = (now - self._counted_until) * (1 - share), now
        if not self._waiting:
            self.tail_seconds += unfilled
            self._work += EngineWork(unfilled_seconds=unfilled)
        if len(self._running) == self.capacity:
            self.tail_seconds = 0.0

    def _now(self) -> float:
        if self._loop is None:
            raise RuntimeError("the engine has not been started")
        return self._loop.time()
