"""`scorer=openai`: the scores are those that transformers computes, however servers are asked. No answer makes a wrong one."""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pipeline.__main__ import main
from pipeline.config.score import ScorerConfig
from pipeline.core.errors import EngineDied, PlaceError, PolicyError, UsageError
from pipeline.core.records import ChainText
from pipeline.scorers.base import FAILED, TOO_LONG, UNREADABLE, StepScores
from pipeline.scorers.served_settings import OpenAiScorerConfig, ScorerServers, ServedApi
from pipeline.scorers.settings import ModelEngine, OwnConfig
from tests.scorers import loaded
from tests.scorers.loaded import chain
from tests.scorers.prm_server import CHAINS, CONTEXT, MODEL, Json, PrmServer, classes_folder, prm_served, signs_offered
from tests.tiny.policy import ASSET

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return classes_folder(tmp_path_factory.mktemp("prm"))


@pytest.fixture(scope="module")
def of_classes(folder: Path) -> Iterator[PrmServer]:
    with prm_served(PrmServer(folder=folder, classes=True)) as server:
        yield server


@pytest.fixture(scope="module")
def of_words() -> Iterator[PrmServer]:
    with prm_served(PrmServer()) as server:
        yield server


@pytest.fixture(autouse=True)
def signs(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr("pipeline.engines.openai.wire.FIRST_PAUSE_SECONDS", 0.002)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with signs_offered() as name:
        yield name


@pytest.fixture(autouse=True)
def plain(of_classes: PrmServer, of_words: PrmServer) -> Iterator[None]:
    """Servers that behave, before and after each test."""
    yield
    for server in (of_classes, of_words):
        server.bend, server.tags, server.status, server.listed, server.ids = None, None, 200, 5, True


def settings(server: PrmServer, **own: Any) -> OpenAiScorerConfig:
    servers = ScorerServers(urls=[server.url], retries=2, **own.pop("servers", {}))
    layout = "own" if server.classes else "signs"
    return OpenAiScorerConfig(
        **{"model": MODEL, "tokenizer": str(server.folder), "layout": layout, "openai": servers, **own}
    )


def scored(config: ScorerConfig, chains: Sequence[ChainText] = CHAINS, **how: Any) -> Sequence[StepScores]:
    return loaded.scored(config, chains, **how)


def by_transformers(folder: Path, *, newest_only: bool = False) -> Sequence[StepScores]:
    return scored(OwnConfig(model=str(folder), engine=ModelEngine.transformers), newest_only=newest_only)


def words_by_transformers(chains: Sequence[ChainText] = CHAINS) -> list[list[float]]:
    """P(+) against P(-) after every step, from the model's logits."""
    model = AutoModelForCausalLM.from_pretrained(ASSET, dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(ASSET)
    good, bad = tokenizer.convert_tokens_to_ids(["+", "-"])
    found = []
    for each in chains:
        texts = [
            "".join(f"{piece}\n" for piece in (each.problem, *each.steps[:end]))
            for end in range(1, len(each.steps) + 1)
        ]
        with torch.no_grad():
            logits = [model(torch.tensor([tokenizer(text).input_ids])).logits[0, -1] for text in texts]
        found.append([float(torch.sigmoid(row[good].double() - row[bad].double())) for row in logits])
    return found


def assert_same(found: Sequence[StepScores], wanted: Sequence[StepScores]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.positions == other.positions
        assert one.n_tokens == other.n_tokens
        assert one.fault == other.fault
        assert one.scores == pytest.approx(other.scores, abs=1e-5)


@pytest.mark.parametrize("newest_only", [False, True])
@pytest.mark.parametrize("api", [None, ServedApi.pooling, ServedApi.classify])
def test_classes_of_a_server_are_the_scores_of_transformers(
    of_classes: PrmServer, folder: Path, api: ServedApi | None, newest_only: bool
) -> None:
    of_classes.paths.clear()
    found = scored(settings(of_classes, api=api), newest_only=newest_only)
    assert_same(found, by_transformers(folder, newest_only=newest_only))
    assert set(of_classes.paths) == {"/classify" if api is ServedApi.classify else "/pooling"}


def test_a_server_that_returns_the_rows_of_tags_alone_gives_the_same_scores(
    of_classes: PrmServer, folder: Path
) -> None:
    one = CHAINS[0]
    ends = [end for end in by_transformers(folder)[0].positions if end is not None]

    def only_ends(answer: Json) -> Json:
        rows = answer["data"][0]["data"]
        kept = [rows[end] for end in ends] if len(rows) > max(ends) else rows[-1:]
        return {**answer, "data": [{**answer["data"][0], "data": kept}]}

    of_classes.bend = only_ends
    assert_same(scored(settings(of_classes), [one]), by_transformers(folder)[:1])


@pytest.mark.parametrize("listed", [5, 1], ids=["both are likely", "only the likeliest token is listed"])
def test_words_of_a_server_are_those_of_the_models_logits(of_words: PrmServer, listed: int) -> None:
    of_words.listed = listed
    found = scored(settings(of_words))
    for each, wanted in zip(found, words_by_transformers(), strict=True):
        assert each.scores == pytest.approx(wanted, abs=1e-5)
        assert each.fault == ""
        assert each.n_computed >= each.n_tokens
    assert found[0].positions == (10, 13)


def test_words_of_a_server_without_extensions_are_found_by_their_texts(of_words: PrmServer) -> None:
    of_words.ids = False
    of_words.bodies.clear()
    found = scored(settings(of_words, servers={"extensions": False}))
    for each, wanted in zip(found, words_by_transformers(), strict=True):
        assert each.scores == pytest.approx(wanted, abs=1e-5)
    assert not any({"allowed_token_ids", "return_tokens_as_token_ids"} & body.keys() for body in of_words.bodies)


def test_a_search_asks_for_the_last_step_alone(of_words: PrmServer) -> None:
    of_words.listed = 5
    found = scored(settings(of_words), newest_only=True)
    assert [len(each.scores) - sum(score is not None for score in each.scores) for each in found] == [1, 3, 0]
    for each, wanted in zip(found, words_by_transformers(), strict=True):
        assert each.scores[-1] == pytest.approx(wanted[-1], abs=1e-5)


def test_steps_beyond_the_servers_context_have_no_score(of_words: PrmServer, of_classes: PrmServer) -> None:
    long = chain(9, "1=", *["1+1=2" * 4] * 12)
    for server in (of_words, of_classes):
        (found,) = scored(settings(server), [long])
        assert found.fault == TOO_LONG
        # A server that generates needs place for the token that it generates.
        assert found.n_tokens + (server is of_words) <= CONTEXT
        assert found.scores[0] is not None
        assert found.scores[-1] is None
    (found,) = scored(settings(of_classes, max_length=30), [long])
    assert [score is None for score in found.scores] == [False, *[True] * 11]


def test_words_that_no_server_states_are_no_score(of_words: PrmServer) -> None:
    def without_words(answer: Json) -> Json:
        logprobs = {"tokens": ["token_id:2"], "token_logprobs": [-1.0], "top_logprobs": [{"token_id:2": -1.0}]}
        return {**answer, "choices": [{**answer["choices"][0], "logprobs": logprobs}]}

    of_words.bend = without_words
    found = scored(settings(of_words))
    assert {each.fault for each in found} == {UNREADABLE}
    assert all(score is None for each in found for score in each.scores)


def test_a_chain_that_servers_refuse_fails_alone(of_classes: PrmServer) -> None:
    found = scored(settings(of_classes), then=lambda: setattr(of_classes, "status", 400))
    assert [each.fault for each in found] == [FAILED] * len(CHAINS)


def put(*path: Any, value: Any) -> Callable[[Json], Json]:
    """An answer with another value at a place."""

    def bent(answer: Json) -> Json:
        made: Any = json.loads(json.dumps(answer))
        inner = made
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return made  # type: ignore[no-any-return]

    return bent


CLASSES = [
    (put("data", value=[]), "0 results for one text"),
    (put("data", value="all"), "data is not a list"),
    (put("data", 0, "data", value=[[0.5, 0.5]] * 7), "7 rows for a text of "),
    (put("data", 0, "data", 0, value=[0.5]), "1 classes, and the model's format has 2"),
    (put("data", 0, "data", 0, value=[0.5, 0.6, 0.1]), "3 classes"),
    (put("data", 0, "data", 0, value=[4.1, -2.0]), "a probability is 4.1, not a number from 0 to"),
    (put("data", 0, "data", 0, value=[0.2, 0.2]), "add up to 0.4, not to 1"),
    (put("data", 0, "data", 0, 1, value=math.nan), "a probability is NaN"),
    (put("data", 0, "data", 0, 1, value=True), "a probability is true"),
    (put("data", 0, "data", 0, 1, value="0.5"), "a probability is 0.5, not a number"),
    (put("data", 0, "data", 0, 1, value=10**400), "a probability is 1000"),
    (put("model", value="other"), "answers for another model, other"),
    (put("usage", value={"prompt_tokens_details": {"cached_tokens": -3}}), "cached_tokens is -3"),
    (lambda answer: b"[" * 50_000, "its answer is not JSON"),
    (lambda answer: b"{" + b" " * 3_000_000 + b"}", "sent more than"),
]
WORDS = [
    (put("choices", value=[]), "0 choices for a request of 1"),
    (put("choices", 0, "logprobs", value=None), "logprobs is not an object"),
    (put("choices", 0, "logprobs", "top_logprobs", value=[7]), "top_logprobs is not an object"),
    (put("choices", 0, "logprobs", "top_logprobs", value=[{str(n): -1.0 for n in range(999)}]), "lists 999 tokens"),
    (put("choices", 0, "logprobs", "top_logprobs", 0, "token_id:12", value=0.5), "a log-probability is 0.5"),
    (put("choices", 0, "logprobs", "token_logprobs", value=[math.nan]), "a log-probability is NaN"),
    (put("choices", 0, "logprobs", "token_logprobs", value=[None]), "a log-probability is null"),
    (put("choices", 0, "logprobs", "tokens", value=["a", "b"]), "log-probabilities of 1 tokens"),
    (lambda answer: "sorry", "the answer is not an object"),
]


@pytest.mark.parametrize(
    ("words", "bend", "said"), [*((False, *each) for each in CLASSES), *((True, *each) for each in WORDS)]
)
def test_a_hostile_answer_is_one_line_and_no_score(
    of_classes: PrmServer, of_words: PrmServer, words: bool, bend: Any, said: str
) -> None:
    server = of_words if words else of_classes
    server.bend = bend
    with pytest.raises((PolicyError, EngineDied)) as at_start:
        scored(settings(server))

    server.bend = None
    with pytest.raises(EngineDied, match=r"failed 3 times \(scorer.openai.retries\)") as death:
        scored(settings(server), then=lambda: setattr(server, "bend", bend))
    for error in (at_start, death):
        assert said in str(error.value)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            {"api": ServedApi.completions},
            "layout=own is read from a head with classes: set scorer.api=pooling or classify",
        ),
        ({"layout": "oracle"}, "scorer.layout=oracle has no layout of tokens: name the scorer"),
        ({"layout": "nobody"}, "there is no such scorer here"),
        ({"openai": ScorerServers()}, "scorer=openai needs scorer.openai.urls"),
        ({"layout": "signs"}, "LlamaForTokenClassification, but scorer="),
        ({"model": "other"}, "does not serve scorer.model=other, it serves prm: set scorer.model to"),
        ({"tokenizer": "/nowhere/at/all"}, "/nowhere/at/all cannot be loaded"),
    ],
)
def test_a_mistake_is_reported_before_anything_is_scored(of_classes: PrmServer, own: Json, said: str) -> None:
    with pytest.raises((UsageError, PolicyError), match=r"^[^\n]*$") as error:
        scored(settings(of_classes, **own))
    assert said in str(error.value)


def test_a_server_without_the_route_is_reported_with_how_to_start_it(of_words: PrmServer, folder: Path) -> None:
    config = settings(of_words, layout="own", tokenizer=str(folder))
    with pytest.raises(
        PolicyError, match=r"status 404.*vllm serve MODEL --runner pooling --pooler-config.task token_classify"
    ):
        scored(config)


def test_a_server_that_is_away_is_no_fault_of_the_model() -> None:
    servers = ScorerServers(urls=["http://127.0.0.1:9/v1"])
    config = OpenAiScorerConfig(model=MODEL, tokenizer=str(ASSET), layout="signs", openai=servers)
    with pytest.raises(PlaceError, match=r"no server of scorer.openai.urls is reachable"):
        scored(config)


def test_the_command_line_scores_with_a_server(
    of_classes: PrmServer, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text(
        "".join(json.dumps({"problem": each.problem, "steps": list(each.steps)}) + "\n" for each in CHAINS[:1])
    )
    asked = [f"data.path={rows}", f"out={tmp_path / 'scores.jsonl'}", "scorer=openai", f"model={MODEL}"]
    served = [f"scorer.tokenizer={folder}", f"scorer.openai.urls=[{of_classes.url}]"]
    assert main(["score", *asked, *served]) == 0, capsys.readouterr()
    (row,) = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert row["model"] == f"{MODEL}:openai"
    assert row["n_scored"] == 2
    texts = row["steps"]
    (wanted,) = scored(OwnConfig(model=str(folder)), [chain(0, CHAINS[0].problem, *texts)])
    assert row["step_scores"] == pytest.approx(wanted.scores, abs=1e-5)
