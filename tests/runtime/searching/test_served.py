"""Searches whose policy is a server: steps end at its stop texts or after pieces of them, with tokens or with texts alone."""

import itertools
import re
import string
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from tests.conftest import write_rows
from tests.engines.conftest import quick_openai as quick_openai
from tests.engines.served import CONTEXT, MODEL, Act, Server, served_beside
from tests.runtime.searching.tables import CANDIDATES, SAMPLES, SEARCHES, tables
from tests.runtime.searching.test_search_run import is_sound
from tests.searches.runs import searched, sums

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]

N = 4
TURN = "assistant: "
"""How the tokenizer of the tests ends a prompt."""


class Storyteller(Server):
    """Each of its chains goes a way of its own, which every sentence names: one that goes on with another's text is found."""

    letters = itertools.cycle(string.ascii_uppercase)

    def _choice(self, index: int, act: Act, body: dict[str, Any]) -> dict[str, Any]:
        prompt = bytes(body["prompt"]).decode()
        written = prompt.rpartition(TURN)[2] if TURN in prompt else ""
        way = next(iter(re.findall(r"way ([A-Z])", written)), "") or next(self.letters)
        chain = (
            f"This is the way {way}, which is a very long way, longer than any piece of the way {way}. \n"
            f"Then the way {way} goes on, $a\n= b$, and on and on, as if there were no end of the way {way}. \n"
            f"At the end of way {way} the answer is 2."
        )
        assert chain.startswith(written), f"{written!r} is no beginning of a chain"
        left = chain[len(written) :]
        text = left[: body["max_tokens"]]
        reason = "length" if len(text) < len(left) else "stop"
        found = [(text.find(stop), stop) for stop in body.get("stop", []) if stop in text]
        choice: dict[str, Any] = {"index": index}
        if found:
            at, stop = min(found)
            text, reason = text[:at] + (stop if body.get("include_stop_str_in_output") else ""), "stop"
            choice[self.names_stop or "stop_reason"] = stop
        choice |= {"text": text, "finish_reason": reason}
        return choice | ({"token_ids": list(text.encode())} if self.reports_ids else {})


@pytest.mark.parametrize("method", ["beam", "best_of_n"])
@pytest.mark.parametrize("splitter", ["newline", "sentence"])
@pytest.mark.parametrize("plain", [False, True], ids=["vllm", "plain"])
def test_a_server_writes_the_steps_of_a_search(method: str, splitter: str, plain: bool, tmp_path: Path) -> None:
    server = Storyteller(
        models={"data": [{"id": MODEL, "max_model_len": 4 * CONTEXT}]}, reports_ids=not plain, reports_usage=False
    )
    data = write_rows(tmp_path / "rows.jsonl", sums(2))
    with served_beside(server) as started:
        words = [
            f"data.path={data}", f"run_dir={tmp_path / 'run'}", f"search={method}", f"search.n={N}", "scorer=oracle",
            f"data.splitter={splitter}", "policy=openai", f"policy.model={MODEL}", f"policy.openai.urls=[{started.url}]",
            f"policy.openai.extensions={'false' if plain else 'true'}", "policy.openai.choices=4", "run.attempts=1",
        ]  # fmt: skip
        config = compose(SEARCH, words).settings()
        assert isinstance(config, SearchRunConfig)
        searched(config)
    found = tables(tmp_path / "run")
    assert found[SEARCHES]["final_answer"].to_list() == ["2", "2"]
    assert found[SEARCHES].sort("row")["verdict"].to_list() == ["correct", "incorrect"]
    for steps in found[CANDIDATES]["steps"].to_list():
        assert len(steps) == 3
        assert len({way for step in steps for way in re.findall(r"way ([A-Z])", step)}) == 1
        assert "$a\n= b$" in steps[1], "a line that ends within a formula goes on"
    samples = found[SAMPLES]
    if splitter == "newline":
        assert samples.filter(pl.col("steps") == 1)["n_tokens"].to_list() == [
            len(text) for text in samples.filter(pl.col("steps") == 1)["text"]
        ], "the server stopped at the end of each step"
    assert is_sound(tmp_path / "run")
