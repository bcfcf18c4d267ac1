"""Which weights a policy name stands for, as far as that can be told without loading them."""

from pathlib import Path

from pipeline.core.errors import PolicyError
from pipeline.core.ids import content_id

_READ = (".json", ".jinja", ".txt", ".model")  # small files that decide how weights and texts are read
_MAX_READ_BYTES = 64 * 1024 * 1024


def folder_fingerprint(key: str, name: str, wanted: str, kind: str) -> str:
    """A hash over a local model folder: the content of its settings and tokenizer, names and sizes of its weights.

    Empty for a Hugging Face name, which `policy.revision` pins. Raises PolicyError for something that is written like a folder
    and is none, or holds no model's files. `key` names the setting, `wanted` the file that such a folder of a `kind` has.
    """
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
