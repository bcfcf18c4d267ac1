"""Chains as a chat, in the model's own chat template. Pure.

Published code renders the chat to one text and tokenizes that, so a problem with `<|im_end|>` in it ends its own turn. Here
only the template, the tags and the answers make special tokens. The template is rendered with a mark for each message; the text
between two special tokens is tokenized as one, as a tokenizer does it. For texts without special tokens, the tokens are those
of the published code. `Chat.check` compares them for a sample chain with the model's tokenizer.

Not covered: templates whose other text depends on what a message says, such as those that remove a thought from an answer.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

from pipeline.core.errors import UsageError
from pipeline.data.prompts import plain_encoder
from pipeline.scorers.layouts import Piece, check_different, check_same, whole_ids

_PAD, _OPEN, _CLOSE = "\u2003", "\ue000", "\ue001"
"""Around the number of a message: a blank that `strip` removes, and characters for private use."""
_SLOT = re.compile(f"({_PAD}?){_OPEN}([0-9]+){_CLOSE}({_PAD}?)")
_FRAMES = 1024
"""Rendered templates that are kept, one for each number of messages."""
_WHY_NOT = 300
"""Characters of a template's own error that a message has."""
_REMEDY = "take the tokenizer that was published with the model, or choose the scorer of its format"
_SAMPLE = ("What is 1 + 1?", ("1 + 1 = 2.", "The answer is 2."))
"""A problem and steps without anything special."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A part of a message: a token at which a step is read. `text`: how published code writes it."""

    text: str
    id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A part of a message: a text before which a step is read, where the model would answer."""

    text: str


Part = str | Tag | Answer
Message = tuple[str, Sequence[Part]]
"""A role and what the message consists of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Slot:
    """The place of a message in a rendered template. `left`, `right`: the template removes blanks there."""

    number: int
    left: bool
    right: bool


@dataclass(slots=True)
class _Segment:
    """Text between two special tokens. `mark`: the number of its characters before the answer, if it has one."""

    text: str = ""
    mark: int | None = None


def _segments(parts: Iterable[Part | Piece]) -> Iterator[Piece | _Segment]:
    """Pieces and texts in order; texts beside each other are one."""
    open_text = _Segment()
    for part in parts:
        match part:
            case str():
                open_text.text += part
            case Answer():
                open_text.mark = len(open_text.text)
                open_text.text += part.text
            case Tag() | Piece():
                if open_text.text:
                    yield open_text
                open_text = _Segment()
                yield part if isinstance(part, Piece) else Piece(ids=(part.id,), read=0)
    if open_text.text:
        yield open_text


class Chat:
    """Chats in a model's template. `placed`: tags that the messages hold beside the tokens of the template.

    Raises UsageError where the tokenizer has no chat template, as `pieces` does where the template refuses the messages.
    """

    def __init__(self, tokenizer: Any, *, model: str, placed: Sequence[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._model = model
        if not getattr(tokenizer, "chat_template", None):
            raise UsageError(
                f"the tokenizer of {model} has no chat template, and this scorer writes chains as a chat: {_REMEDY}"
            )
        added = {text: int(token) for text, token in tokenizer.get_added_vocab().items()}
        self._added = added
        self._special = re.compile(
            "|".join(re.escape(text) for text in sorted(added, key=len, reverse=True)) or r"(?!)"
        )
        self._encode = plain_encoder(tokenizer, [*placed, *self._of_template()])
        self._frame = lru_cache(_FRAMES)(self._new_frame)
        self._answer = lru_cache(_FRAMES)(self._new_answer)

    def pieces(self, messages: Sequence[Message]) -> list[Piece]:
        """The chat in the model's tokens."""
        frame = self._frame(tuple(role for role, _ in messages))
        parts = (_stripped(messages[item.number][1], item) if isinstance(item, _Slot) else [item] for item in frame)
        return self._tokenized(list(_segments(chain.from_iterable(parts))))

    def answer_ids(self, messages: Callable[[str], Sequence[Message]], words: Sequence[tuple[str, str]]) -> list[int]:
        """The first token of each word, given as (setting, word), where the model would answer. `messages`: a chat whose
        answers are the word. Raises UsageError where it is another token there than alone, or where words begin alike."""
        found: list[int] = []
        for setting, word in words:
            pieces = self.pieces(messages(word))
            piece = next(piece for piece in pieces if piece.read is not None)
            (alone,) = self._encode([word])
            first = list(piece.ids[(piece.read or 0) + 1 :][:1])
            if not first or first != list(alone[:1]):
                raise UsageError(
                    f"{setting}={word!r} begins with another token at the start of an answer than alone, in the tokenizer of "
                    f"{self._model}: give the word that the model was trained with"
                )
            found.append(first[0])
        check_different(words, found)
        return found

    def check(self, chat: Callable[[str, Sequence[str]], Sequence[Message]], what: str) -> None:
        """Compare a sample chain with the tokens of its whole text. Raises UsageError where they differ. `what`: what may
        merge, for the message."""
        messages = chat(*_SAMPLE)
        for text in (part for _, parts in messages for part in parts if isinstance(part, str)):
            if special := self._special.search(text):
                raise UsageError(
                    f"a text of the settings of this scorer holds {special[0]!r}, a special token of {self._model}: leave it "
                    "out, for the chat template writes such tokens"
                )
        text = self._rendered(
            [
                (role, "".join(part if isinstance(part, str) else part.text for part in parts))
                for role, parts in messages
            ]
        )
        found = [token for piece in self.pieces(messages) for token in piece.ids]
        expected = whole_ids(self._tokenizer, text)
        check_same(found, expected, model=self._model, decode=self._tokenizer.decode, what=what)

    def _of_template(self) -> list[str]:
        template = self._tokenizer.chat_template
        texts = [template] if isinstance(template, str) else [str(one) for one in template.values()]
        return [token for token in self._added if any(token in text for text in texts)]

    def _rendered(self, messages: Sequence[tuple[str, str]]) -> str:
        chat = [{"role": role, "content": content} for role, content in messages]
        try:
            text = self._tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=False)
        except Exception as error:  # a template is a program of the model's, and may raise anything
            why = " ".join(str(error).split())[:_WHY_NOT]
            roles = ", ".join(dict.fromkeys(role for role, _ in messages))
            raise UsageError(
                f"the chat template of {self._model} refuses a chat with the roles {roles}: {why or type(error).__name__}: "
                f"{_REMEDY}"
            ) from error
        return str(text)

    def _new_frame(self, roles: tuple[str, ...]) -> tuple[Piece | str | _Slot, ...]:
        marks = [(role, f"{_PAD}{_OPEN}{number}{_CLOSE}{_PAD}") for number, role in enumerate(roles)]
        text = self._rendered(marks)
        items: list[int | str | _Slot] = []
        at = 0
        for slot in _SLOT.finditer(text):
            items += self._literal(text[at : slot.start()])
            items.append(_Slot(number=int(slot[2]), left=not slot[1], right=not slot[3]))
            at = slot.end()
        items += self._literal(text[at:])
        if [item.number for item in items if isinstance(item, _Slot)] != list(range(len(roles))):
            raise UsageError(
                f"the chat template of {self._model} does not write every message once and in order: {_REMEDY}"
            )
        return tuple(self._fixed(items))

    def _fixed(self, items: Sequence[int | str | _Slot]) -> Iterable[Piece | str | _Slot]:
        """The items, with the tokens of everything that no message touches."""
        last = len(items) - 1
        for at, item in enumerate(items):
            alone = (at == 0 or isinstance(items[at - 1], int)) and (at == last or isinstance(items[at + 1], int))
            match item:
                case int():
                    yield Piece(ids=(item,))
                case str() if alone:
                    yield Piece(ids=tuple(self._encode([item])[0]))
                case _:
                    yield item

    def _literal(self, text: str) -> Iterable[int | str]:
        """The text of a template, cut at its special tokens."""
        at = 0
        for token in self._special.finditer(text):
            yield text[at : token.start()]
            yield self._added[token[0]]
            at = token.end()
        yield text[at:]

    def _tokenized(self, made: Sequence[Piece | _Segment]) -> list[Piece]:
        texts = [each.text for each in made if isinstance(each, _Segment) and each.mark is None]
        found = iter(self._encode(texts))
        pieces: list[Piece] = []
        for each in made:
            match each:
                case Piece():
                    pieces.append(each)
                case _Segment(mark=None):
                    pieces.append(Piece(ids=next(found)))
                case _Segment(text=text, mark=int(mark)):
                    pieces.append(self._answer(text, mark))
        return pieces

    def _new_answer(self, text: str, mark: int) -> Piece:
        """The piece of a text with an answer after `mark` characters."""
        before, together = self._encode([text[:mark], text])
        if list(together[: len(before)]) != list(before):
            raise UsageError(
                f"the tokenizer of {self._model} merges the answer {text[mark:]!r} with the text before it: give the word that "
                "the model was trained with"
            )
        return Piece(ids=tuple(together), read=len(before) - 1)


def _stripped(parts: Sequence[Part], slot: _Slot) -> list[Part]:
    """The parts without the blanks that the template removes at both ends of a message."""
    made = list(parts)
    if slot.left and made and isinstance(made[0], str):
        made[0] = made[0].lstrip()
    if slot.right and made and isinstance(made[-1], str):
        made[-1] = made[-1].rstrip()
    return made
