"""Uploads a finished export to the Hugging Face Hub, as one commit: all of it is there, or nothing of it.

What would fail for sure is refused before anything is exported. The endpoint is that of HF_ENDPOINT, the token that of HF_TOKEN
or of `hf auth login`.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.core.errors import UploadError, UsageError, first_line
from pipeline.core.formatting import printable
from pipeline.export.settings import ExportConfig

MESSAGE = "Step labels by stepvalue"
_KIND = "dataset"
_USER = re.compile(r"//[^/@]*@")
_HINTS = {
    401: "the token is not valid there: run `hf auth login`, or set HF_TOKEN",
    403: "the token may not do that: give it write access to the data sets of {owner}, or push to an owner where it has that",
    404: "there is no owner {owner}, or the token may not see it: create it there, or correct push_to_hub",
}
"""HTTP status -> what it means to the user."""
_SAID = 200
"""Characters of a hub's own message that are shown."""


class Hub:
    """The data set of the settings. Raises UsageError where an upload cannot work: without the package, or without a token."""

    def __init__(self, config: ExportConfig) -> None:
        try:
            import huggingface_hub
        except ImportError as error:
            raise UsageError("push_to_hub needs the package huggingface_hub: pip install huggingface_hub") from error
        assert config.push_to_hub is not None
        self._name = config.push_to_hub
        self._private = config.hub.private
        token = huggingface_hub.get_token()
        if not token:
            raise UsageError(
                "push_to_hub: there is no token for the Hugging Face Hub here: run `hf auth login`, or set HF_TOKEN. Nothing "
                "was exported"
            )
        self._token = token
        self._api: Any = huggingface_hub.HfApi(token=token)
        self._add = huggingface_hub.CommitOperationAdd

    def push(self, folder: Path, names: Iterable[str]) -> str:
        """Upload these files of a folder, and return the address of the data set. Raises UploadError; the folder stays."""
        try:
            found = self._api.create_repo(self._name, repo_type=_KIND, private=self._private, exist_ok=True)
            files = [self._add(path_in_repo=name, path_or_fileobj=folder / name) for name in names]
            self._api.create_commit(found.repo_id, files, commit_message=MESSAGE, repo_type=_KIND)
        except Exception as error:
            raise UploadError(
                f"{folder} holds the whole export, but the data set {self._name} could not be pushed to {self._endpoint}: "
                f"{self._reason(error)}. To push it again, start the same command with overwrite=true"
            ) from error
        return str(found)

    @property
    def _endpoint(self) -> str:
        """The address of the hub, without a user's name and password."""
        return _USER.sub("//", str(self._api.endpoint))

    def _reason(self, error: Exception) -> str:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status not in _HINTS:
            return f"{type(error).__name__}: {self._shown(first_line(error))}"
        hint = _HINTS[status].format(owner=self._name.partition("/")[0])
        said = self._shown(getattr(error, "server_message", None) or "")
        return f"{hint} (HTTP {status}{f', {said!r}' if said else ''})"

    def _shown(self, text: str) -> str:
        """What a hub says, on one line and without the token."""
        return printable(text.replace(self._token, "***"))[:_SAID].rstrip(".")
