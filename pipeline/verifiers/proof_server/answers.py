"""Requests to a Kimina Lean Server, `POST /api/check`, and its answers, which carry messages of Lean's REPL. Pure.

{"snippets": [{"id": "0", "code": "example : 1 = 2 := rfl"}], "timeout": 30}
{"results": [{"id": "0", "time": 0.1, "response": {"env": 0, "messages": [{"severity": "error", "data": "..."}]}}]}
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PATH = "/api/check"
_AXIOMS = re.compile(r"'([^ ]+)' (?:does not depend on any axioms|depends on axioms: \[([^\[\]]+)\])")


class BadAnswer(ValueError):
    """An answer is not what such a server gives. Its text says what is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What Lean says of a text. `errors`: the messages of its errors. `uses_sorry`: whether something in it is not proved.

    `failure`: why Lean has not looked at it, such as a time limit of the server; empty if it has. `infos`: other messages."""

    errors: tuple[str, ...] = ()
    infos: tuple[str, ...] = ()
    uses_sorry: bool = False
    failure: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether Lean accepts the text, perhaps with a `sorry`."""
        return not self.errors and not self.failure

    @property
    def axioms(self) -> list[tuple[str, frozenset[str]]]:
        """What `#print axioms` lists, in its order: a full name, and the axioms that it depends on."""
        found = (_AXIOMS.fullmatch(" ".join(each.split())) for each in self.infos)
        return [(each[1], frozenset((each[2] or "").split(", ")) - {""}) for each in found if each]


def request(texts: Sequence[str], seconds: int) -> bytes:
    """A request to check texts, each within `seconds`."""
    snippets = [{"id": str(number), "code": text} for number, text in enumerate(texts)]
    return json.dumps({"snippets": snippets, "timeout": seconds, "reuse": True}).encode()


def answer(content: bytes, texts: int) -> list[Checked]:
    """The answers on `texts` texts, in their order. Raises BadAnswer."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise BadAnswer("it is no JSON") from error
    results = said.get("results") if isinstance(said, dict) else None
    if not isinstance(results, list) or not all(isinstance(each, dict) for each in results):
        raise BadAnswer("it has no list of results")
    by_id = {each.get("id"): each for each in results}
    if len(results) != texts or set(by_id) != {str(number) for number in range(texts)}:
        raise BadAnswer("its results are not those of the texts sent")
    return [_checked(by_id[str(number)]) for number in range(texts)]


def _checked(result: Mapping[str, Any]) -> Checked:
    error, response = result.get("error"), result.get("response")
    if isinstance(error, str) and error:
        return Checked(failure=error)
    if not isinstance(response, dict):
        raise BadAnswer("a result has neither an error nor a response")
    if isinstance(response.get("message"), str):
        return Checked(failure=response["message"])
    if not isinstance(response.get("env"), int):
        # The REPL numbers the environment after whatever it has looked at.
        raise BadAnswer("a response has no environment")
    messages = response.get("messages") or []
    sorries = response.get("sorries") or []
    if not isinstance(messages, list) or not isinstance(sorries, list) or not all(map(_is_message, messages)):
        raise BadAnswer("a response has messages of another form")
    others = tuple(each["data"] for each in messages if each["severity"] != "error")
    return Checked(
        errors=tuple(each["data"] for each in messages if each["severity"] == "error"),
        infos=others,
        uses_sorry=bool(sorries) or any("sorry" in each for each in others),
    )


def _is_message(message: object) -> bool:
    return (
        isinstance(message, dict)
        and message.get("severity") in ("error", "warning", "info", "trace", "information")
        and isinstance(message.get("data"), str)
    )
