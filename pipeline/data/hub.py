"""Streams rows of a data set on the Hugging Face Hub: `hf://OWNER/NAME[/CONFIG][:SPLIT]`; the default split is `train`.

Only this module imports the package `datasets`, and only if such a path is used.
"""

import re
from collections.abc import Iterator

from pipeline.core.errors import InputError
from pipeline.core.records import RowLocation

Row = dict[str, object]

PREFIX = "hf://"
MAX_REASON_CHARS = 500
_PATH = re.compile(PREFIX + r"(?P<name>[\w.-]+(?:/[\w.-]+)?)(?:/(?P<config>[\w.-]+))?(?::(?P<split>.+))?")
SETTING = "data.path"
_NOT_INSTALLED = "hf:// needs the package `datasets`; install it: pip install datasets"


def hub_rows(path: str, setting: str = SETTING) -> Iterator[tuple[RowLocation, Row]]:
    """All rows of a data set, in order; `setting` named it. Raises InputError if it is unavailable, also during iteration."""
    parts = _parts(path, setting)
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise InputError(f"{setting}: {_NOT_INSTALLED}") from error
    try:
        rows = load_dataset(parts["name"], parts["config"], split=parts["split"] or "train", streaming=True)
        for number, row in enumerate(rows, start=1):
            yield RowLocation(file=path, line=number), dict(row)
    except Exception as error:  # the network, the Hub and each file format raise their own errors
        raise _unavailable(path, error, setting) from error


def hub_commit(path: str) -> str:
    """The current commit of the data set. Raises InputError if the Hub does not return it."""
    name = _parts(path, SETTING)["name"]
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise InputError(f"{SETTING}: {_NOT_INSTALLED}") from error
    try:
        return str(HfApi().dataset_info(name).sha)
    except Exception as error:  # as above
        raise _unavailable(path, error, SETTING) from error


def _parts(path: str, setting: str) -> re.Match[str]:
    parts = _PATH.fullmatch(path)
    if parts is None:
        raise InputError(f"{setting}: {path} is not of the form hf://OWNER/NAME[/CONFIG][:SPLIT]")
    return parts


def _unavailable(path: str, error: Exception, setting: str) -> InputError:
    reason = f"{type(error).__name__}: {' '.join(str(error).split())}"[:MAX_REASON_CHARS]
    remedy = "check its name, configuration and split and the network, or download its files and give their path"
    return InputError(f"{setting}: {path} is not available ({reason}); {remedy}")
