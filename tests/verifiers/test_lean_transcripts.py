"""What Lean's REPL answered in its own tests, played back by a stand-in for the server.

The transcripts are those of a checkout of https://github.com/leanprover-community/repl, which `STEPVALUE_LEAN_REPL` names. They
are not copied here.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pipeline.verifiers.base import StepInContext, StepVerdict
from pipeline.verifiers.proof_server.answers import answer
from pipeline.verifiers.proof_server.verifier import ProofServer
from pipeline.verifiers.settings import ProofServerConfig
from tests.verifiers.lean_server import CLEAN, serving

CHECKOUT = os.environ.get("STEPVALUE_LEAN_REPL", "")
pytestmark = pytest.mark.skipif(not CHECKOUT, reason="STEPVALUE_LEAN_REPL names no checkout of Lean's REPL")


class Exchange(NamedTuple):
    """A command and the answer of the REPL. `alone`: the command has no other before it."""

    command: str
    response: dict[str, Any]
    alone: bool


def exchanges() -> Iterator[Exchange]:
    """Those with an environment. The others are about tactics alone, which the server does not pass on."""
    for path in sorted(Path(CHECKOUT, "test").rglob("*.in")):
        answered = path.with_suffix(".expected.out")
        if answered.exists():
            asked, said = _objects(path.read_text()), _objects(answered.read_text())
            for request, response in zip(asked, said, strict=False):
                if "cmd" in request and "env" in response:
                    yield Exchange(request["cmd"], response, "env" not in request)


def _objects(text: str) -> list[dict[str, Any]]:
    decoder, found, at = json.JSONDecoder(strict=False), [], 0
    while at < len(text.rstrip()):
        value, end = decoder.raw_decode(text, at)
        found.append(value)
        at = end + len(text[end:]) - len(text[end:].lstrip())
    return found


def test_every_answer_is_read() -> None:
    found = list(exchanges())
    assert found
    for _, response, _ in found:
        content = json.dumps({"results": [{"id": "0", "time": 0.1, "response": response}]}).encode()
        (read,) = answer(content, 1)
        messages = response.get("messages", [])
        assert read.errors == tuple(each["data"] for each in messages if each["severity"] == "error")
        assert read.uses_sorry == (bool(response.get("sorries")) or "declaration uses" in str(messages))


def test_no_finding_says_otherwise_than_lean() -> None:
    alone = [each for each in exchanges() if each.alone]
    recorded = {each.command.strip(): {"time": 0.1, "response": each.response} for each in alone}
    verdicts = []
    with serving(lambda code: recorded.get(re.sub(r"def stepvalue_\w+", "example", code), CLEAN)) as server:
        verifier = ProofServer(ProofServerConfig(url=server.url))
        for command, response, _ in alone:
            found = verifier.verify(StepInContext(problem="", earlier=(), step=f"```lean\n{command}\n```"))
            wrong = any(each["severity"] == "error" for each in response.get("messages", []))
            assert found.verdict is not (StepVerdict.HOLDS if wrong else StepVerdict.REFUTED), (command, found)
            assert not (response.get("sorries") and found.verdict is StepVerdict.HOLDS), command
            verdicts.append(found.verdict)
    assert StepVerdict.REFUTED in verdicts
