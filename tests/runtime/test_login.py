"""The token of `hf auth login`, which lies in a file of the driver's machine, for workers on other machines."""

from pathlib import Path

import pytest
from huggingface_hub import constants

from pipeline.runtime.actors import _login


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the token, which is not there yet."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_OIDC_RESOURCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_STORED_TOKENS_PATH", str(tmp_path / "stored_tokens"))
    return tmp_path / "token"


def test_a_login_gives_a_token(login: Path) -> None:
    login.write_text("hf_of_a_login\n")
    assert _login() == {"HF_TOKEN": "hf_of_a_login"}


def test_no_login_gives_none(login: Path) -> None:
    assert not login.exists()
    assert _login() == {}


def test_a_token_of_the_shell_goes_first(login: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    login.write_text("hf_of_a_login")
    monkeypatch.setenv("HF_TOKEN", "hf_of_the_shell")
    assert _login() == {}


def test_a_login_that_cannot_be_read_ends_no_run(login: Path) -> None:
    login.write_bytes(b"\xff\xfe")
    assert _login() == {}
