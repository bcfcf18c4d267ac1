"""Tokenizers of Hugging Face models, as `prompts` wants them."""

from collections.abc import Sequence
from typing import Any

from pipeline.core.errors import PolicyError

_MAX_CAUSE_CHARACTERS = 300


class HfTokenizer:
    """A Hugging Face tokenizer as `prompts` wants it."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def encode_plain(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=True))

    def encode_chat(self, messages: Sequence[dict[str, str]]) -> list[int]:
        if not self._tokenizer.chat_template:
            raise PolicyError(
                "this model has no chat template: set policy.prompt.style=plain and policy.prompt.template"
            )
        text = self._tokenizer.apply_chat_template(list(messages), add_generation_prompt=True, tokenize=False)
        return self.encode(text)

    def decode(self, ids: Sequence[int]) -> str:
        # As it was written: some models' settings would have blanks before full stops taken out.
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))


def load_tokenizer(name: str, revision: str | None, setting: str = "policy.tokenizer") -> HfTokenizer:
    """The tokenizer of a Hugging Face name or local folder. Raises PolicyError, which names the `setting` to mend, when it
    cannot be loaded here."""
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise PolicyError(
            f"the model's tokenizer needs transformers: install the openai extra, or cpu or gpu, as the README says ({error})"
        ) from error
    try:
        return HfTokenizer(AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False))
    except Exception as error:
        cause = " ".join(str(error).split())[:_MAX_CAUSE_CHARACTERS]
        raise PolicyError(
            f"the tokenizer {name} cannot be loaded: {cause}; set {setting} to a local folder or Hugging Face name of "
            "the model that is served"
        ) from error
