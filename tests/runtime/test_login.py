"""The token of `hf auth login`, which lies in a file of the driver's machine, for workers on other machines."""

from pathlib import Path

import pytest
from huggingface_hub import constants

from pipeline.runtime.actors import _login


@pytest.mark.parametrize(
    ("written", "shell", "found"),
    [
        (b"hf_of_a_login\n", None, {"HF_TOKEN": "hf_of_a_login"}),
        (None, None, {}),
        (b"hf_of_a_login", "hf_of_the_shell", {}),
        (b"\xff\xfe", None, {}),
    ],
)
def test_a_login_that_can_be_read_gives_a_token_where_the_shell_has_none(
    written: bytes | None, shell: str | None, found: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "stored_tokens"))
    if written is not None:
        (tmp_path / "token").write_bytes(written)
    if shell is not None:
        monkeypatch.setenv("HF_TOKEN", shell)
    assert _login() == found
