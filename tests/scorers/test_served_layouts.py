"""`scorer=openai` with the layouts of published models: a server's words make the scores that transformers makes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.core.errors import UsageError
from pipeline.scorers.registry import SCORERS
from pipeline.scorers.served_settings import OpenAiScorerConfig, ScorerServers
from tests.scorers.loaded import chain
from tests.scorers.prm_server import PrmServer, prm_served
from tests.scorers.published import CONTEXT, PROBLEM, STEPS, llama_prm, mistral_prm
from tests.scorers.test_served import assert_same, scored, settings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("quick_openai")]

CHAINS = [chain(0, PROBLEM, *STEPS), chain(1, PROBLEM, STEPS[0]), chain(2, PROBLEM, "", "So <|eot_id|> ки + is it.")]
OF_WORDS: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "math_shepherd": (mistral_prm, {"numbered": True}),
    "rlhflow": (llama_prm, {"between": "\\n\\n"}),
    "fover": (llama_prm, {}),
}


@pytest.mark.parametrize("layout", OF_WORDS)
def test_a_served_model_of_words_has_the_scores_of_transformers(layout: str, tmp_path: Path) -> None:
    make, own = OF_WORDS[layout]
    folder = make(tmp_path / "prm")
    wanted = scored(SCORERS.settings(layout)(model=str(folder), **own), CHAINS)
    with prm_served(PrmServer(folder=folder, context=CONTEXT)) as server:
        found = scored(settings(server, layout=layout, **own), CHAINS)
        newest = scored(settings(server, layout=layout, **own), CHAINS, newest_only=True)
    assert_same(found, wanted)
    assert [each.scores[-1] for each in newest] == pytest.approx([each.scores[-1] for each in wanted], abs=1e-5)
    assert all(0.0 < score < 1.0 for each in found for score in each.scores if score is not None)


def test_a_setting_that_the_layout_lacks_is_refused() -> None:
    servers = ScorerServers(urls=["http://h:1/v1"])
    with pytest.raises(UsageError, match=r"scorer\.tag has no effect with scorer\.layout=rlhflow"):
        scored(OpenAiScorerConfig(model="m", layout="rlhflow", tag="x", openai=servers))
    with pytest.raises(UsageError, match=r"scorer\.bad='\+' is out of range"):
        scored(OpenAiScorerConfig(model="m", layout="rlhflow", bad="+", openai=servers))
