"""A policy that knows by heart what it writes, and the steps that come of it when it is asked for one after the other."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pipeline.config.choices import Splitter
from pipeline.config.label import DataConfig
from pipeline.core.records import Completion, Finish, Problem, Request
from pipeline.core.tables import SampleAnswer
from pipeline.data.prompts import Tokenizer
from pipeline.engines.oracle import ByteTokenizer
from pipeline.graders.base import Ending
from pipeline.runtime.searching.pieces import CHUNK, StepCutter
from pipeline.runtime.searching.written import Written
from pipeline.searches.base import Node, Sample, path_of
from pipeline.searches.log import nodes_of, root_of

PROBLEM = Problem(problem_id="p", text="?", golds=("1",))
PROMPT = 3
PROMPT_IDS = (10**6,) * PROMPT
"""Tokens without text."""
TOKENS, STEPS, CONTEXT = 10_000, 1_000, 20_000


class Pieces:
    """A tokenizer whose tokens are the given pieces of bytes, by their numbers. Other numbers have no text."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.pieces = pieces

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(self.pieces[token] for token in ids if token < len(self.pieces)).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        raise AssertionError("the policy gives tokens")

    encode_plain = encode
    as_text = staticmethod(str)

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        raise AssertionError("the policy gives tokens")


class Bytes(ByteTokenizer):
    """A token for each byte. Other numbers have no text."""

    def decode(self, ids: Sequence[int]) -> str:
        return super().decode([token for token in ids if token < 256])


@dataclass(slots=True)
class ByHeart:
    """A policy that goes on with `tokens` wherever it is, and then ends its turn with a token without text.

    `trims`: it leaves the stop out of its texts. `deaf`: it does not know stops. `textual`: it gives no tokens."""

    tokenizer: Tokenizer
    tokens: Sequence[int]
    trims: bool = False
    deaf: bool = False
    textual: bool = False
    asked: list[Request] = field(default_factory=list, init=False)
    written: int = field(default=0, init=False)

    END = 10**6

    def complete(self, request: Request) -> Completion:
        self.asked.append(request)
        left = [*self.tokens[len(request.prefix.prompt_ids) - PROMPT :], self.END]
        ids: list[int] = []
        text, finish = "", Finish.LENGTH
        assert request.max_tokens is None or request.max_tokens > 0
        while len(ids) < (request.max_tokens or len(left)):
            ids.append(left[len(ids)])
            text = self.tokenizer.decode(ids)
            found = [] if self.deaf else [(text.find(stop), stop) for stop in request.stop if stop in text]
            if found or ids[-1] == self.END:
                finish = Finish.STOP
                if found:
                    at, stop = min(found)
                    text = text[: at if self.trims else at + len(stop)]
                break
        self.written += len(ids)
        return Completion(
            request=request, text=text, finish=finish, n_tokens=len(ids), token_ids=() if self.textual else tuple(ids)
        )


def sampled(
    policy: ByHeart,
    data: DataConfig,
    *,
    steps: int = 1,
    ending: Ending | None = None,
    max_tokens: int = TOKENS,
    max_steps: int = STEPS,
    context: int = CONTEXT,
    chunk: int = CHUNK,
) -> list[SampleAnswer]:
    """A chain from its beginning to its end, `steps` at a time."""
    cutter, answers = StepCutter(data, chunk), list[SampleAnswer]()
    node: Node = root_of(PROBLEM.problem_id)
    before: tuple[int, ...] = ()
    while not node.ended:
        path = path_of(node)
        ask = Sample(node=node, draw=0, steps=steps)
        written = Written(
            row=0,
            ask=ask,
            asked=ask.key,
            problem=PROBLEM,
            prompt_ids=PROMPT_IDS,
            before=before,
            stem="".join(each.text for each in path),
            last_step=path[-1].text if path else "",
            max_tokens=max_tokens,
            max_steps=max_steps,
            context=context,
            began=0.0,
            search_began=0.0,
        )
        answer = None
        while answer is None and written.left > 0:
            completion = policy.complete(written.next_request(cutter))
            answer = written.take(completion, cutter, policy.tokenizer, ending, 1.0)
        answers.append(answer or written.no_place(1.0))
        node = nodes_of(PROBLEM.problem_id, ask.node, answers[-1])[-1]
        before += answers[-1].token_ids
    return answers


def texts_of(answers: Sequence[SampleAnswer]) -> list[str]:
    """The steps of answers as they are."""
    found: list[str] = []
    for answer in answers:
        begin = 0
        for end in answer.step_ends:
            found.append(answer.text[begin:end])
            begin = end
    return found


def config(splitter: Splitter, pattern: str | None = None) -> DataConfig:
    return DataConfig(path="none", splitter=splitter, pattern=pattern)
