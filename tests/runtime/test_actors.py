"""What Ray 2.60 says of a worker that was lost with its machine, and of one that died of its work; and the token of
`hf auth login`, which lies in a file of the driver's machine, for workers on other machines."""

from pathlib import Path

import pytest
from huggingface_hub import constants
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError

from pipeline.runtime.actors import _login, is_cut_off, was_taken_away

DIED = "The actor died unexpectedly before finishing this task.\n\tclass_name: _Actor\n\tpid: 8754\n"


@pytest.mark.parametrize(
    "error",
    [
        ActorUnavailableError("RpcError: RPC error: Socket closed rpc_code: 14", b"\0" * 16),
        RayActorError(error_msg=DIED, preempted=True),
        RayActorError(error_msg=DIED + "The actor died because its node has died. Node Id: cf6a"),
        RayActorError(error_msg=DIED + "the actor's node was terminated expectedly: received SIGTERM"),
        RayActorError(
            error_msg=DIED + "Worker exit type: SYSTEM_ERROR Worker exit detail: Worker exits unexpectedly. "
            "Worker exits with an exit code 1. The process receives a SIGTERM."
        ),
    ],
)
def test_an_actor_that_was_taken_away_is_not_charged(error: RayActorError) -> None:
    assert was_taken_away(error)


@pytest.mark.parametrize(
    "error",
    [
        RayActorError(
            error_msg=DIED
            + "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes "
            "include: (1) the process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called"
        ),
        RayActorError(error_msg=DIED + "INTENDED_SYSTEM_EXIT Worker exit detail: exit code 1"),
        ActorDiedError(),
    ],
)
def test_an_actor_that_died_of_its_work_is_charged(error: RayActorError) -> None:
    assert not was_taken_away(error)


def test_an_actor_whose_driver_lost_its_node() -> None:
    words = "Worker exit type: SYSTEM_ERROR Worker exit detail: Owner's node has crashed."
    assert is_cut_off(RayActorError(error_msg=f"The actor is dead because its owner has died. Owner Id: 01. {words}"))
    assert not is_cut_off(RayActorError(error_msg=DIED + "The actor died because its node has died."))


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
