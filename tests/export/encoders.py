"""Tiny tokenizers for tests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Characters:
    """One token per character, except that the two characters of `merged` are one token when they are adjacent."""

    bos: int | None = None
    merged: str = ""

    def ids(self, text: str) -> list[int]:
        joined = text.replace(self.merged, "\0") if self.merged else text
        return [ord(character) for character in joined]

    def special_in(self, text: str) -> str | None:
        return None

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        return self.ids("".join(message["content"] for message in messages))
