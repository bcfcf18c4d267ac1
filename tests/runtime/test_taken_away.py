"""Ray 2.60's messages distinguish a worker that was lost with its machine from a worker that died of its work."""

import pytest
from ray.exceptions import ActorDiedError, ActorUnavailableError, RayActorError

from pipeline.runtime.actors import is_cut_off, was_taken_away

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
