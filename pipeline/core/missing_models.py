"""Why a model or a tokenizer cannot be found: it is neither a folder on this machine nor a reachable Hugging Face name."""

from pathlib import Path

from pipeline.core.errors import Name, UsageError

_MAX_CAUSE_CHARACTERS = 300
_LOOKS_LIKE_A_PATH = ("/", ".", "~")


def refuse_missing_folder(setting: str, name: str) -> None:
    """Raise UsageError for a path to a folder that does not exist."""
    if is_missing_folder(name):
        raise UsageError("the folder ", Name(setting), f"={name} does not exist: give a folder or a Hugging Face name")


def is_missing_folder(name: str) -> bool:
    """Whether a name is a path to a folder that does not exist here. A Hugging Face name (NAME or OWNER/NAME) is no path."""
    is_path = name.startswith(_LOOKS_LIKE_A_PATH) or name.count("/") > 1
    return is_path and not Path(name).expanduser().is_dir()


def load_failure(error: BaseException) -> str:
    """Why loading failed, in a line without a full stop. Faults of the Hugging Face Hub are stated in our own words, others in
    those of the error."""
    from huggingface_hub import errors

    reasons: tuple[tuple[type[BaseException], str], ...] = (
        (errors.GatedRepoError, "its owner restricts access on the Hugging Face Hub; ask for access and set HF_TOKEN"),
        (errors.RepositoryNotFoundError, "the Hugging Face Hub has no such model, or it is private and needs HF_TOKEN"),
        (errors.RevisionNotFoundError, "it has no such revision on the Hugging Face Hub"),
        (errors.LocalEntryNotFoundError, "there is no such folder here, and the Hugging Face Hub cannot be reached"),
        (errors.OfflineModeIsEnabled, "there is no such folder here, and the Hugging Face Hub is turned off (HF_HUB_OFFLINE)"),
        (errors.HFValidationError, "there is no such folder here, and this cannot be a Hugging Face name"),
    )  # fmt: skip
    chain = _with_causes(error)
    for kind, reason in reasons:
        if any(isinstance(one, kind) for one in chain):
            return reason
    return " ".join(str(error).split())[:_MAX_CAUSE_CHARACTERS].rstrip(".")


def _with_causes(error: BaseException) -> list[BaseException]:
    found: list[BaseException] = []
    now: BaseException | None = error
    while now is not None and now not in found:
        found.append(now)
        now = now.__cause__ or now.__context__
    return found
