"""Tokenizers small enough to be read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Characters:
    """A token a character, but for `merged`, two characters that are one token where they stand side by side."""

    bos: int | None = None
    merged: str = ""

    def ids(self, text: str) -> list[int]:
        joined = text.replace(self.merged, "\0") if self.merged else text
        return [ord(character) for character in joined]

    def special_in(self, text: str) -> str | None:
        return None

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        return self.ids("".join(message["content"] for message in messages))
