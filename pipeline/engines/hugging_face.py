"""Facts about a model (a folder or a Hugging Face name) before it is loaded: its tokenizer, its sizes and context length from
`config.json`, and a fingerprint of its weights. Downloads its files."""

import errno
import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

from pipeline.core.errors import Name, PlaceError, PolicyError, UsageError, first_line, said
from pipeline.core.hardware import Architecture
from pipeline.core.ids import content_id
from pipeline.core.missing_models import is_missing_folder, load_failure, refuse_missing_folder
from pipeline.data.prompts import Arguments, Encode, Messages, plain_encoder
from pipeline.engines.architectures import UnknownArchitecture, architecture_of
from pipeline.engines.settings import VllmConfig

NO_TEMPLATE = Name("set policy.prompt.style=plain and policy.prompt.template")
"""What to do about a model without a chat template."""
_NAME = "config.json"
_LENGTH = re.compile("n_positions|max_position_embeddings|(?:max_)?seq_len(?:gth)?|max_sequence_length")
_HASHED = (".json", ".jinja", ".txt", ".model")  # small files that decide how weights and texts are read
_WEIGHTS = (".safetensors", ".bin", ".pt")
"""The suffixes of weights that vLLM looks for, in this order."""
_OTHER_WEIGHTS = (".pth", ".gguf", ".onnx", ".h5", ".msgpack", ".ot", ".tflite", ".mlmodel", ".npz", ".tar", ".zip")
_ORIGINAL = "consolidated"
"""The start of names of weights in the format of the model's authors, which are there a second time in that of transformers."""
_OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)
_CONTEXT = Name("policy.max_model_len")
_TURN_MARK = re.compile(r"<[|｜].*[|｜]>", re.DOTALL)
"""The form of control tokens, which some models do not declare as special."""
_BROKEN = "\0"
"""In a special token that is text: after its first character. No text of the data has this character."""
_MAX_HASHED_BYTES = 64 * 1024 * 1024
_UNREADABLE = (UnknownArchitecture, ImportError, OSError, ValueError)


class HfTokenizer:
    """A Hugging Face tokenizer as `data.prompts.ChatTokenizer`. Special tokens in a text of the data stay text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def encode(self, text: str) -> list[int]:
        return self._encoded(self.as_text(text))

    def encode_plain(self, text: str) -> list[int]:
        return self._encoded(text, special=True)

    def encode_chat(self, messages: Messages) -> list[int]:
        return self.encode_opened(messages, "")

    def encode_opened(self, messages: Messages, opening: str, arguments: Arguments = None) -> list[int]:
        """Only the template and `opening` make special tokens. Raises as `chat_text` does."""
        return self._encoded(self.chat_text(messages, arguments) + opening)

    def as_text(self, text: str) -> str:
        return self._special.sub(lambda token: f"{token[0][0]}{_BROKEN}{token[0][1:]}", text)

    def chat_text(self, messages: Messages, arguments: Arguments = None) -> str:
        """Raises PolicyError for a model without a chat template, and where that fails."""
        if not self._tokenizer.chat_template:
            raise PolicyError("this model has no chat template: ", NO_TEMPLATE)
        plain = [{**each, "content": self.as_text(each["content"])} for each in messages]
        asked = {**(arguments or {}), "add_generation_prompt": True, "tokenize": False}
        try:
            return str(self._tokenizer.apply_chat_template(plain, **asked))
        except Exception as error:
            raise PolicyError(f"the model's chat template fails: {first_line(error)}; look at policy.prompt") from error

    @cached_property
    def _special(self) -> re.Pattern[str]:
        """A special token, as a group."""
        added = self._tokenizer.added_tokens_decoder.values()
        known = {str(token) for token in added if token.special or _TURN_MARK.fullmatch(str(token))}
        known |= {token for token in self._tokenizer.all_special_tokens if len(token) > 1}
        return re.compile(f"({'|'.join(map(re.escape, sorted(known, key=len, reverse=True))) or '(?!)'})")

    @cached_property
    def _plain(self) -> Encode:
        # A copy, because a tokenizer whose settings change cannot be used by another thread at that moment.
        tokenizer = deepcopy(self._tokenizer)
        return plain_encoder(tokenizer, [*filter(_TURN_MARK.fullmatch, tokenizer.get_added_vocab())])

    def _encoded(self, text: str, *, special: bool = False) -> list[int]:
        """The tokens of a text. `special`: with those that the tokenizer puts around it."""
        if _BROKEN not in text:
            return list(self._tokenizer.encode(text, add_special_tokens=special))
        texts = [part.replace(_BROKEN, "") for part in self._special.split(text)]
        pieces = self._plain(texts)
        ids = list(self._tokenizer.encode("", add_special_tokens=True)) if special else []
        for at, piece in enumerate(pieces):
            ids += [self._tokenizer.convert_tokens_to_ids(texts[at])] if at % 2 else piece
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        # The exact text: the settings of some models would remove spaces before full stops.
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))


def load_tokenizer(name: str, revision: str | None, setting: str = "policy.tokenizer") -> HfTokenizer:
    """The tokenizer of a Hugging Face name or local folder. Raises PolicyError, which names the `setting` to correct, when it
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
        raise PolicyError(
            f"the tokenizer {name} cannot be loaded: {load_failure(error)}; set ",
            Name(setting),
            " to a local folder or a Hugging Face name",
        ) from error


def planned_architecture(
    model: str, revision: str | None, *, dtype: str, quantization: str | None, kv_dtype: str
) -> Architecture | None:
    """The sizes of a model (a name or a folder), with a KV cache in `kv_dtype` (vLLM's names). None where they are unavailable
    for any reason; the engine reports the reason when it starts."""
    try:
        config = _read(model, revision)
        return architecture_of(config, dtype=dtype, quantization=quantization, kv_dtype=kv_dtype)
    except _UNREADABLE:
        return None


def planned_config(model: str, revision: str | None) -> Mapping[str, Any] | None:
    """The content of the `config.json` of a model (a name or a folder). None where it is unavailable for any reason; the engine
    reports the reason when it starts."""
    try:
        return _read(model, revision)
    except _UNREADABLE:
        return None


def planned_context(policy: VllmConfig, model: str) -> int:
    """The context length in tokens of a policy with this model (a name or a folder).

    It is `policy.max_model_len`, or else the smallest length that `config.json` states, which vLLM uses too. Raises PolicyError
    where `config.json` states no length or cannot be read.
    """
    if policy.max_model_len is not None:
        return policy.max_model_len
    try:
        config = _read(model, policy.revision)
    except _UNREADABLE as error:
        raise PolicyError(f"{_NAME} of {model} cannot be read ({error}): set ", _CONTEXT) from error
    parts = [config, *(part for part in [config.get("text_config")] if isinstance(part, dict))]
    named = (each for part in parts for key, each in part.items() if _LENGTH.fullmatch(key))
    stated = [each for each in named if isinstance(each, int)]
    if not stated:
        raise PolicyError(f"{_NAME} of {model} does not state the model's context: set ", _CONTEXT)
    return int(min(stated))


def _read(model: str, revision: str | None) -> Mapping[str, Any]:
    folder = Path(model).expanduser()
    if folder.is_dir():
        path = folder / _NAME
    else:
        from huggingface_hub import hf_hub_download

        path = Path(hf_hub_download(model, _NAME, revision=revision))
    config = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(config, dict):
        raise UnknownArchitecture(f"{_NAME} is not a JSON object")
    return config


def fetch_model(model: str, revision: str | None, *, weights: bool) -> None:
    """Download to this machine's cache what an engine loads of a model. A folder is there already.

    Processes of one machine that call it at once download each file once. If the Hub cannot be reached, nothing is raised: the
    engine finds the files in the cache, or reports what is missing. Raises PolicyError if the Hub refuses the model, and
    PlaceError if the cache cannot be written or a folder is missing here.
    """
    if Path(model).expanduser().is_dir():
        return
    if is_missing_folder(model):
        # The driver has seen it, so it is this machine that lacks it.
        raise PlaceError(
            *said("the {policy} {model} cannot be loaded: this folder does not exist on this machine; ", model=model),
            "use one that all nodes see",
        )
    from huggingface_hub import HfApi, errors, snapshot_download

    refused = "the {policy} {model} cannot be downloaded: {why}; "
    try:
        names = HfApi().list_repo_files(model, revision=revision)
        snapshot_download(model, revision=revision, allow_patterns=needed_files(names, weights=weights))
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError) as error:
        raise PolicyError(*said(f"{refused}check {{policy.model}}", model=model, why=load_failure(error))) from error
    except OSError as error:
        if error.errno in _OF_THE_DISK:
            raise PlaceError(
                *said(refused, model=model, why=load_failure(error)),
                "free space in the cache of models or set HF_HOME to a folder with space",
            ) from error
    except Exception:  # noqa: BLE001  network errors have many types, and the engine reports those that matter
        pass


def needed_files(names: Sequence[str], *, weights: bool) -> list[str]:
    """The files of a repository that vLLM loads: those at its top, with weights in one format, or without `weights`.

    Folders of a repository hold other formats."""
    top = [name for name in names if "/" not in name]
    small = [name for name in top if not name.endswith((*_WEIGHTS, *_OTHER_WEIGHTS))]
    if not weights:
        return small
    by_suffix = ([name for name in top if name.endswith(suffix)] for suffix in _WEIGHTS)
    found = next((names for names in by_suffix if names), [])
    return small + ([name for name in found if not name.startswith(_ORIGINAL)] or found)


def folder_fingerprint(key: str, name: str, wanted: str, kind: str) -> str:
    """A hash of a local model folder: the content of its settings and tokenizer files, the names and sizes of all its files.

    Empty for a Hugging Face name, which `policy.revision` pins. Raises UsageError for a path to a folder that does not exist
    or does not contain the file `wanted`. `key` names the setting and `kind` describes the folder in these errors.
    """
    folder = Path(name).expanduser()
    if not folder.is_dir():
        refuse_missing_folder(key, name)
        return ""
    if not (folder / wanted).is_file():
        raise UsageError(Name(key), f"={name} does not contain {wanted}: give the folder {kind}")
    parts = []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        size = path.stat().st_size
        parts += [path.name, str(size)]
        if path.suffix in _HASHED and size <= _MAX_HASHED_BYTES:
            parts.append(path.read_text(errors="replace"))
    return content_id("model", *parts)
