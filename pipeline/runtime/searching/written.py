"""A sample while the policy writes it: what the engine is asked next, and what came of it."""

from dataclasses import dataclass

from pipeline.core.records import Completion, Finish, Prefix, Problem, Request
from pipeline.core.table import storable
from pipeline.core.tables import SampleAnswer
from pipeline.data.prompts import TokenCut, Tokenizer
from pipeline.engines.vllm.detokenize import MOST_CONTEXT, Decode, text_after
from pipeline.graders.base import Ending
from pipeline.runtime.searching.pieces import CHUNK, MOST_HELD, NO_STEPS, PEEK, Piece, StepCutter
from pipeline.searches.base import WHOLE, Sample

MOST_BLANK = 4
"""Requests in a row that may bring blank lines alone. After them, the policy writes without a stop."""


@dataclass(slots=True, kw_only=True)
class Written:
    """A sample while the policy writes it. Its answer has no final answer and no verdict yet.

    `row`: of its problem. `asked`: what the ids of its requests begin with. `prompt_ids`: of the bare problem. `before`: the
    tokens of the chain so far, `stem` its text, `last_step` that of its last step. `max_tokens`, `max_steps`: of the longest
    chain. `context`: tokens that the policy reads. `began`: when it was asked for, and `search_began`, when the search began,
    in seconds of any clock."""

    row: int
    ask: Sample
    asked: str
    problem: Problem
    prompt_ids: tuple[int, ...]
    before: tuple[int, ...]
    stem: str
    last_step: str
    max_tokens: int
    max_steps: int
    context: int
    began: float
    search_began: float
    token_ids: tuple[int, ...] = ()
    text: str = ""
    requests: int = 0
    n_prompt_tokens: int = 0
    n_tokens: int = 0
    _blank: int = 0
    """Requests since which the text is blank."""
    _held_from: int | None = None
    """The number of tokens after which a step seemed to end within a formula."""
    _peek: int = 0

    @property
    def left(self) -> int:
        """Tokens that may still be generated. 0 where the chain has as many steps as it may have."""
        if self._steps_left <= 0:
            return 0
        written = len(self.before) + len(self.token_ids)
        return min(self.max_tokens - written, self.context - len(self.prompt_ids) - written)

    def next_request(self, cutter: StepCutter) -> Request:
        """What the engine is asked next. Only with tokens `left`."""
        number = self.requests
        prompt = (*self.prompt_ids, *self.before, *self.token_ids)
        self.requests += 1
        self.n_prompt_tokens += len(prompt)
        stop, most = self._limits(cutter)
        return self._request(number, prompt, stop, most)

    def take(
        self, completion: Completion, cutter: StepCutter, tokenizer: Tokenizer, ending: Ending | None, now: float
    ) -> SampleAnswer | None:
        """Go on with a completion. The answer, or None where another request must follow."""
        finish, by_steps = completion.finish, self._by_steps(cutter)
        # Some engines of plug-ins and some servers give a text alone.
        tokens = completion.token_ids or tuple(tokenizer.encode(completion.text))
        stopped = (
            by_steps and finish is Finish.STOP and self._stopped(completion.text, tokens, cutter, tokenizer.decode)
        )
        self.token_ids += tokens
        self.n_tokens += completion.n_tokens
        more = stopped or (finish is Finish.LENGTH and self.left > 0 and bool(tokens))
        if more and not by_steps:
            return None
        held = self._held_from
        piece = cutter.cut(
            self.last_step,
            _last(self.prompt_ids, self.before),
            self.token_ids,
            tokenizer.decode,
            ended=not more,
            patient=held is None or len(self.token_ids) - held < MOST_HELD,
        )
        self.text, cut = piece.text, piece.cut
        most = self._steps_left
        wanted = min(most, self.ask.steps) if by_steps else most
        kept = min(wanted, len(cut.ends))
        answered = (
            ending is not None and kept > 0 and ending.complete(f"{self.stem}{self.text[: cut.ends[kept - 1]]}\n")
        )
        if more and not answered and kept < wanted:
            self._go_on(piece)
            return None
        if not more and kept == len(cut.ends):
            return self._answer(cut, kept, finish, now, ended=True)
        if answered:
            return self._answer(cut, kept, Finish.STOP, now, ended=True)
        if kept == most:
            return self._answer(cut, kept, Finish.LENGTH, now, ended=True)
        return self._answer(cut, kept, Finish.STOP, now, ended=False)

    def no_place(self, now: float) -> SampleAnswer:
        """The answer where no token is left."""
        full = len(self.before) + len(self.token_ids) >= self.max_tokens or self._steps_left <= 0
        return self._answer(NO_STEPS, 0, Finish.LENGTH if full else Finish.TOO_LONG, now, ended=True)

    def completion(self, answer: SampleAnswer) -> Completion:
        """The steps of an answer as a completion of what was before them."""
        request = self._request(0, (*self.prompt_ids, *self.before), (), None)
        return Completion(request=request, text=answer.text, finish=answer.finish, n_tokens=answer.n_tokens)

    @property
    def _steps_left(self) -> int:
        return self.max_steps - self.ask.node.depth

    def _by_steps(self, cutter: StepCutter) -> bool:
        return self.ask.steps != WHOLE and not cutter.whole_chains

    def _stopped(self, text: str, tokens: tuple[int, ...], cutter: StepCutter, decode: Decode) -> bool:
        """Whether a stop ended a completion. Some servers leave it out of the text, but not out of the tokens."""
        if cutter.stopped(text):
            return True
        return cutter.stopped(text_after(decode, _last(self.prompt_ids, self.before, self.token_ids), tokens))

    def _limits(self, cutter: StepCutter) -> tuple[tuple[str, ...], int]:
        """The stops and the length of the next request."""
        if not self._by_steps(cutter):
            return (), self.left
        if not cutter.stops or self._blank >= MOST_BLANK:
            return (), min(self.left, cutter.chunk)
        return cutter.stops, min(self.left, self._peek or self.left)

    def _request(self, number: int, prompt: tuple[int, ...], stop: tuple[str, ...], most: int | None) -> Request:
        node, request_id = self.ask.node, f"{self.asked}-{number:05d}"
        return Request(
            request_id=request_id,
            issue_index=self.ask.draw,
            problem=self.problem,
            prefix=Prefix(
                # Engines take prompts with equal ids to be equal.
                prefix_id=request_id if self.token_ids else node.node_id,
                step_index=node.depth,
                text=self.stem + self.text,
                prompt_ids=prompt,
            ),
            stop=stop,
            max_tokens=most,
        )

    def _go_on(self, piece: Piece) -> None:
        self._blank = 0 if piece.text.strip() else self._blank + 1
        if not piece.held:
            self._held_from, self._peek = None, 0
            return
        self._held_from = len(self.token_ids) if self._held_from is None else self._held_from
        self._peek = min(CHUNK, 2 * self._peek or PEEK)

    def _answer(self, cut: TokenCut, kept: int, finish: Finish, now: float, *, ended: bool) -> SampleAnswer:
        node = self.ask.node
        return SampleAnswer(
            row=self.row,
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
            seconds=now - self.search_began,
            took=now - self.began,
        )


def _last(*tokens: tuple[int, ...]) -> tuple[int, ...]:
    """The last ones of joined tokens, as many as their successors are decoded with."""
    found: tuple[int, ...] = ()
    for each in reversed(tokens):
        if len(found) < MOST_CONTEXT:
            found = (*each[-MOST_CONTEXT:], *found)
    return found
