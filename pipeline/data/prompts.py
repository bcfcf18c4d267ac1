"""Builds prompts: the token ids that a policy continues, from problems and chains.

Steps are split by characters, but prompts are token ids. The prompt of a prefix is the problem in the policy's template,
followed by the steps so far as an unfinished assistant turn. Blanks after the last step are dropped (newlines stay), because
models continue badly after a single space token. Chains that the policy sampled are cut between its own tokens instead.
A prompt may open a tag of thinking. Steps after it would be thinking, so a setting says what becomes of it.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from pipeline.config.choices import PromptStyle, Thinking
from pipeline.config.label import PromptConfig
from pipeline.core.errors import PolicyError
from pipeline.core.ids import content_id
from pipeline.core.records import Chain, Prefix, Problem, Solution
from pipeline.data.steps import prefix_text
from pipeline.data.thinking import THINKING

_BLANKS = " \t"
Encode = Callable[[Sequence[str]], Sequence[Sequence[int]]]
"""Texts -> the token ids of each, without special tokens."""
Decode = Callable[[Sequence[int]], str]
_OPENED = re.compile(
    rf"[<\[◁]\|?(?!end)(?:\w{{1,12}}?[:_]){{0,3}}{THINKING}"
    r"(?:_start)?(?:\|?>|\]|▷)\s*\Z|<\|channel\|>analysis<\|message\|>\Z|<\|channel>thought\s*\Z",
    re.IGNORECASE,
)
_INSIDE = "<think>\n"
"""What stands for any tag that a prompt opened, where its completions are graded."""
Messages = Sequence[dict[str, str]]
Arguments = Mapping[str, Any] | None


class Tokenizer(Protocol):
    """The methods of a policy's tokenizer that prompts use."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text of the data, which continues another text, without special tokens."""

    def encode_chat(self, messages: Messages) -> list[int]:
        """Token ids of a conversation in the policy's chat template, up to the start of the assistant's turn."""

    def encode_plain(self, text: str) -> list[int]:
        """Token ids of a text at the start of a document, with the special token that the model expects there, if any."""

    def as_text(self, text: str) -> str:
        """A text of the data, so marked that `encode_plain` makes no special token of it."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of token ids, without special tokens."""


@runtime_checkable
class ChatTokenizer(Tokenizer, Protocol):
    """A tokenizer with a chat template that can be seen, and that may get arguments."""

    def chat_text(self, messages: Messages, arguments: Arguments = None) -> str:
        """The text that `encode_chat` encodes."""

    def encode_opened(self, messages: Messages, opening: str, arguments: Arguments = None) -> list[int]:
        """Like `encode_chat`, of a turn that begins with `opening`, tokenized as one text with the conversation."""


def opened_thinking(thinking: object) -> str:
    """What stands before the steps and the completion where an answer is looked for. `thinking`: see `PromptConfig`, also as
    it is recorded."""
    return _INSIDE if thinking in (Thinking.inside, Thinking.inside.value) else ""


def root_id(problem_id: str, again: int = 0) -> str:
    """Id of the bare problem as a prefix. `again`: see `prefix_id`."""
    return content_id("prefix", problem_id, "", *_again(again))


def prefix_id(solution: Solution, index: int, again: int = 0) -> str:
    """Id of the first `index` steps of a chain. Chains of a problem that begin with the same text, or tokens, share the id.

    `again`: see `InputRow`. Units share no rollouts, so the prefixes of a problem have other ids in each of its units.
    """
    tokens = ",".join(map(str, _tokens(solution, index)))
    begin = ["tokens", tokens] if tokens else [prefix_text(solution.text, solution.ends, index)]
    return content_id("prefix", solution.problem_id, *begin, *_again(again))


def _again(again: int) -> tuple[str, ...]:
    return ("again", str(again)) if again else ()


def count_problems(chains: Iterable[Chain]) -> int:
    """Number of the chains' problems. A problem of a grown run counts in the first of its units only."""
    roots = {chain.problem.problem_id: chain.root_prefix_id for chain in chains}
    return sum(root == root_id(problem_id) for problem_id, root in roots.items())


def stem(solution: Solution, index: int) -> str:
    """The text of the first `index` steps as the policy sees it; for grading, the completion is appended to it."""
    text = prefix_text(solution.text, solution.ends, index)
    return text if solution.token_ids or solution.as_written else text.rstrip(_BLANKS)


def _tokens(solution: Solution, index: int) -> tuple[int, ...]:
    return solution.token_ids[: solution.token_ends[index - 1]] if solution.token_ids else ()


@dataclass(frozen=True, slots=True)
class Prompter:
    """Builds the prompts of one policy. `max_model_len` is its context length in tokens.

    Making it raises PolicyError for a model without a chat template, and where `policy.prompt.thinking` does not fit it."""

    tokenizer: Tokenizer
    config: PromptConfig
    max_tokens: int
    max_model_len: int
    opened: str = field(init=False)
    """The tag of thinking that prompts open, with the blanks after it. Empty: none, or the chat template cannot be seen."""

    def __post_init__(self) -> None:
        text, probe, thinking, where = "", "1 + 1?", self.config.thinking, "policy.prompt.template"
        if self.config.style is PromptStyle.plain:
            text = plain_prompt(self.config, self.tokenizer.as_text(probe))
        elif isinstance(self.tokenizer, ChatTokenizer):
            where = "the model's chat template"
            text = self.tokenizer.chat_text(chat_messages(self.config, probe), self.config.template_arguments)
        found = _OPENED.search(text)
        object.__setattr__(self, "opened", found[0] if found else "")
        if found and thinking is None:
            raise PolicyError(
                f"{where} opens {found[0].strip()}, so steps would be continued as thinking: set policy.prompt.thinking=close "
                "to have them after it, or =inside if they are thinking. Some chat templates open none with "
                "policy.prompt.template_arguments.enable_thinking=false"
            )
        if text and not found and thinking is Thinking.inside:
            raise PolicyError(f"policy.prompt.thinking=inside: {where} opens no thinking; leave it out")

    def root(self, problem: Problem, again: int = 0) -> Prefix:
        """The bare problem as a prefix. `again`: see `prefix_id`."""
        return Prefix(
            prefix_id=root_id(problem.problem_id, again),
            step_index=0,
            text=opened_thinking(self.config.thinking),
            prompt_ids=tuple(self._problem_ids(problem.text)),
        )

    def prefixes(self, root: Prefix, solution: Solution, again: int = 0) -> list[Prefix]:
        """The prefixes after steps 1 to K of a chain; the last one is the whole chain. `again`: see `prefix_id`."""
        found = []
        for index in range(1, len(solution.ends) + 1):
            text, own_id = stem(solution, index), prefix_id(solution, index, again)
            ids = root.prompt_ids + (_tokens(solution, index) or tuple(self.tokenizer.encode(text)))
            found.append(Prefix(prefix_id=own_id, step_index=index, text=root.text + text, prompt_ids=ids))
        return found

    def fits(self, prefix: Prefix) -> bool:
        """Whether the prompt and `max_tokens` more tokens fit into the context."""
        return len(prefix.prompt_ids) + self.max_tokens <= self.max_model_len

    def _problem_ids(self, problem: str) -> list[int]:
        closing = _closing(self.opened) if self.config.thinking is Thinking.close else ""
        if self.config.style is PromptStyle.plain:
            return self.tokenizer.encode_plain(plain_prompt(self.config, self.tokenizer.as_text(problem)) + closing)
        if isinstance(self.tokenizer, ChatTokenizer):
            return self.tokenizer.encode_opened(
                chat_messages(self.config, problem), closing, self.config.template_arguments
            )
        return self.tokenizer.encode_chat(chat_messages(self.config, problem))


def chat_messages(config: PromptConfig, problem: str) -> list[dict[str, str]]:
    """The messages that ask for the solution of a problem, with `role` and `content` each."""
    messages = [{"role": "system", "content": config.system}] if config.system else []
    for example in config.examples:
        messages.append({"role": "user", "content": _asked(config, example.problem)})
        messages.append({"role": "assistant", "content": example.solution})
    return [*messages, {"role": "user", "content": _asked(config, problem)}]


def plain_prompt(config: PromptConfig, problem: str) -> str:
    """The text that asks for the solution of a problem, with style=plain."""
    parts = [config.system] if config.system else []
    parts += [_filled(config, example.problem) + example.solution for example in config.examples]
    return "\n\n".join([*parts, _filled(config, problem)])


def _filled(config: PromptConfig, problem: str) -> str:
    return config.template.replace("{problem}", _asked(config, problem))


def _asked(config: PromptConfig, problem: str) -> str:
    return f"{problem}\n{config.instruction}" if config.instruction else problem


def _closing(opened: str) -> str:
    """What closes a tag of thinking, with the blanks after it, before any thought. Empty if there is none."""
    tag = opened.rstrip()
    if "channel" in tag:
        return "<|end|><|start|>assistant<|channel|>final<|message|>" if tag.endswith("<|message|>") else "<channel|>"
    closed = re.sub("start|begin", "END" if tag.isupper() else "end", tag, flags=re.IGNORECASE)
    closed = re.sub(r"(?=\w)", "/", tag, count=1) if closed == tag else closed
    return f"{opened[len(tag) :]}{closed}\n\n" if tag else ""


@dataclass(frozen=True, slots=True)
class TokenCut:
    """The step ends of a sampled chain, moved to the ends of tokens: `ends` in characters, `token_ends` in tokens."""

    ends: tuple[int, ...] = ()
    token_ends: tuple[int, ...] = ()


def cut_on_tokens(text: str, ends: Sequence[int], token_ids: Sequence[int], decode: Decode) -> TokenCut:
    """Move each step end to the end of a token, so that every prefix consists of tokens that the model wrote.

    A prefix contains the tokens of its last step's words, and the tokens of the blanks after them unless such a token also
    contains text of the next step. (The blank before a word is usually part of the word's token.) If one token contains the end
    of a step and the beginning of the next one, the step end moves to the end of the token. A step that becomes empty is merged
    into its neighbour. The last end is `len(text)`; tokens without text after it (the end of the turn) are not counted. A blank
    text has no steps.
    """
    if not text.strip():
        return TokenCut()
    last = len(token_ids)
    while not decode(token_ids[last - 1 : last]):
        last -= 1
    new_ends: list[int] = []
    new_token_ends: list[int] = []
    n_tokens = 0
    for end in ends[:-1]:
        n_tokens = _tokens_covering(text, len(text[:end].rstrip()), token_ids, decode, n_tokens)
        while n_tokens < len(token_ids) and len(decode(token_ids[: n_tokens + 1])) <= end:
            n_tokens += 1
        moved = len(decode(token_ids[:n_tokens]))
        if text[new_ends[-1] if new_ends else 0 : moved].strip() and text[moved:].strip():
            new_ends.append(moved)
            new_token_ends.append(n_tokens)
    return TokenCut(ends=(*new_ends, len(text)), token_ends=(*new_token_ends, last))


def _tokens_covering(text: str, end: int, token_ids: Sequence[int], decode: Decode, least: int) -> int:
    """The number of tokens whose text has the first `end` characters, and is whole; at least `least`."""
    # The end is likely near: doubling the distance is cheaper than halving that to the end of a long text.
    low, high = least, least + 1
    while high < len(token_ids) and len(decode(token_ids[:high])) < end:
        low, high = high + 1, 2 * high - least + 1
    counts = range(min(high, len(token_ids)))
    low = bisect_left(counts, end, low, key=lambda count: len(decode(token_ids[:count])))
    # A character of several tokens decodes to a replacement character until all its tokens are there.
    while low < len(token_ids) and not text.startswith(decode(token_ids[:low])):
        low += 1
    return low


def encoder(tokenizer: Any) -> Encode:
    """An `Encode` for the tokenizer. It treats special tokens in a text as plain text."""

    def encode(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        if not texts:
            return []
        found = tokenizer(list(texts), add_special_tokens=False, split_special_tokens=True, verbose=False)
        return found["input_ids"]  # type: ignore[no-any-return]

    return encode


def plain_encoder(tokenizer: Any, placed: Collection[str] = ()) -> Encode:
    """An `Encode` in which no text makes a token that the layout places: neither a special token nor one of `placed`.

    A tokenizer recognizes added tokens that it does not call special in every text. Where a text holds such a token of
    `placed`, it is cut after the first character of that, and the parts are tokenized alone.
    """
    encode, added = encoder(tokenizer), tokenizer.get_added_vocab()
    known = [text for text in placed if text in added and len(text) > 1 and len(encode([text])[0]) == 1]
    if not known:
        return encode
    inside = re.compile("|".join(f"(?<={re.escape(text[0])})(?={re.escape(text[1:])})" for text in known))

    def guarded(texts: Sequence[str]) -> Sequence[Sequence[int]]:
        if not any(inside.search(text) for text in texts):
            return encode(texts)
        return [[token for part in encode(inside.split(text)) for token in part] for text in texts]

    return guarded
