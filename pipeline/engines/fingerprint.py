"""Which weights a policy name stands for, as far as that can be told without loading them."""

from pathlib import Path

from pipeline.config.choices import PolicyKind
from pipeline.config.label import PolicyConfig
from pipeline.core.errors import PolicyError
from pipeline.core.ids import content_id

_READ = (".json", ".jinja", ".txt", ".model")  # small files that decide how weights and texts are read
_MAX_READ_BYTES = 64 * 1024 * 1024


def policy_fingerprint(policy: PolicyConfig) -> str:
    """A hash over a local model folder: the content of its settings and tokenizer, names and sizes of its weights.

    Of policy=openai it is over the folder of the tokenizer: nobody can tell what weights a server holds. Empty for the shipped
    policies and for Hugging Face names, which `policy.revision` pins. Raises PolicyError for something that is written like a
    folder and is none, or holds no model's files.
    """
    match policy.kind:
        case PolicyKind.hf:
            return _of_folder("policy.model", policy.model, "config.json", "of a Hugging Face model")
        case PolicyKind.openai:
            name, wanted = policy.tokenizer or policy.model, "tokenizer_config.json"
            return _of_folder("policy.tokenizer", name, wanted, "with the served model's tokenizer")
        case _:
            return ""


def _of_folder(key: str, name: str, wanted: str, kind: str) -> str:
    folder = Path(name).expanduser()
    if not folder.is_dir():
        if name.startswith(("/", ".", "~")) or name.count("/") > 1:
            raise PolicyError(f"there is no folder {key}={name}: give a folder or a Hugging Face name")
        return ""
    if not (folder / wanted).is_file():
        raise PolicyError(f"{key}={name} holds no {wanted}: give the folder {kind}")
    parts = []
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        size = path.stat().st_size
        parts += [path.name, str(size)]
        if path.suffix in _READ and size <= _MAX_READ_BYTES:
            parts.append(path.read_text(errors="replace"))
    return content_id("model", *parts)
