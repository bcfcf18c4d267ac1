"""Searches of the loop: what is sampled has the policy's distribution and depends on no batch; tables say what runs hold."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM

from pipeline.analysis.searches.read import search_run
from pipeline.analysis.searches.records import Candidates, ProblemSearch, SearchRun
from pipeline.core.records import Completion, Finish, Prefix, Problem, Request
from pipeline.data.prompts import Tokenizer
from pipeline.engines.registry import policy_for
from pipeline.scorers.heads import load_tokenizer
from pipeline.storage.location import storage_at
from pipeline.storage.stored_search import stored_search
from pipeline.train.model import new_model
from tests.conftest import write_rows
from tests.loop.engine import TinyEngine
from tests.loop.replay import label_settings
from tests.loop.sampler import Sampler
from tests.loop.search_table import bound_by_size, line_of, lines, pooled, scorer_auc
from tests.loop.searching import Searches
from tests.tiny.policy import ASSET, SHORT

PROMPTS = ("12*3-9+4\n", "7+5\n7+5=12\n", "12*3-9+4\n12*3=36\n36-9=27\n", "7+5\n")
LINE_END = "\n"


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """As in `test_experiment`."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    config = label_settings()
    return asyncio.run(policy_for(config.policy).facts(config.sampling)).tokenizer


def test_completions_of_prompts_of_any_lengths_follow_the_models_probabilities(tokenizer: Tokenizer) -> None:
    """One by one, with the whole text passed through the model of transformers for each token."""
    model = AutoModelForCausalLM.from_pretrained(ASSET, dtype=torch.float32)
    sampler = Sampler(0)
    prompts = [tokenizer.encode(prompt) for prompt in PROMPTS]
    chances = torch.from_numpy(np.random.default_rng(4).random((len(prompts), 30)))
    line_end = tokenizer.encode(LINE_END)[0]
    limits, ends = [30, 30, 5, 30], [None, line_end, None, line_end]
    found = sampler.continued(prompts, chances, limits, ends)
    for prompt, row, limit, end, (tokens, all_sums) in zip(prompts, chances, limits, ends, found, strict=True):
        ids = list(prompt)
        for chance in row[:limit]:
            with torch.no_grad():
                sums = model(torch.tensor([ids])).logits[0, -1].double().softmax(-1).cumsum(-1)
            assert all_sums[len(ids) - len(prompt)] == pytest.approx(sums.numpy(), abs=1e-5)
            ids.append(int((sums < chance * sums[-1]).sum()))
            if ids[-1] in (sampler.end, end):
                break
        assert tokens == ids[len(prompt) :]
    assert len(found[2][0]) == 5


def _request(tokenizer: Tokenizer, number: int, prompt: str, stop: tuple[str, ...], most: int | None) -> Request:
    ids = tuple(tokenizer.encode(prompt))
    return Request(
        request_id=f"request-{number}",
        issue_index=number,
        problem=Problem(problem_id=prompt, text=prompt, golds=()),
        prefix=Prefix(prefix_id=prompt, step_index=0, text="", prompt_ids=ids),
        stop=stop,
        max_tokens=most,
    )


@pytest.fixture(scope="module")
def requests(tokenizer: Tokenizer) -> list[Request]:
    kinds = [(prompt, stop, most) for prompt in PROMPTS for stop in ((), (LINE_END,)) for most in (None, 4)]
    return [_request(tokenizer, number, *kind) for number, kind in enumerate(kinds * 3)]


async def _answers(engine: TinyEngine, batches: Sequence[Sequence[Request]]) -> dict[str, Completion]:
    async def answers(batch: Sequence[Request]) -> list[Completion]:
        return [each async for group in engine.generate(batch, keep_tokens=True) for each in group]

    found = await asyncio.gather(*map(answers, batches))
    return {each.request.request_id: each for group in found for each in group}


def test_a_completion_depends_on_its_request_and_the_seed_alone(tokenizer: Tokenizer, requests: list[Request]) -> None:
    together = asyncio.run(_answers(TinyEngine(tokenizer, 3, "tiny"), [requests]))
    backwards = [[request] for request in reversed(requests)]
    engine = TinyEngine(tokenizer, 3, "tiny")
    assert asyncio.run(_answers(engine, backwards)) == together
    # In another event loop, and known from before.
    assert asyncio.run(_answers(engine, [requests])) == together
    assert len(together) == len(requests)
    others = asyncio.run(_answers(TinyEngine(tokenizer, 4, "tiny"), [requests]))
    assert {key: each.text for key, each in others.items()} != {key: each.text for key, each in together.items()}


def test_completions_end_at_a_stop_the_limit_or_the_policys_own_end(
    tokenizer: Tokenizer, requests: list[Request]
) -> None:
    found = asyncio.run(_answers(TinyEngine(tokenizer, 3, "tiny"), [requests]))
    seen = set()
    for each in found.values():
        request, text = each.request, each.text
        limit = request.max_tokens or SHORT.max_tokens
        assert each.n_tokens == len(each.token_ids) <= limit
        assert text == tokenizer.decode(each.token_ids)
        if request.stop:
            assert LINE_END not in text[:-1]
        if each.finish is Finish.LENGTH:
            assert each.n_tokens == limit
        else:
            assert (request.stop and text.endswith(LINE_END)) or len(text) == each.n_tokens - 1
        seen.add((bool(request.stop), request.max_tokens, each.finish))
    assert {
        (True, 4, Finish.LENGTH),
        (True, None, Finish.STOP),
        (False, None, Finish.STOP),
        (False, 4, Finish.LENGTH),
    } <= seen


@pytest.fixture(scope="module")
def scorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny policy with a head of random weights."""
    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("scorer")
    new_model(str(ASSET), None, separator=LINE_END, layers=None).save_pretrained(folder)
    load_tokenizer(str(ASSET)).save_pretrained(folder)
    return folder


def test_searches_are_runs_of_the_command_and_share_what_is_sampled(tmp_path: Path, scorer: Path) -> None:
    problems = tmp_path / "problems.jsonl"
    write_rows(
        problems, [{"id": text, "problem": text, "answer": answer} for text, answer in (("7+5-3", "9"), ("2*6-4", "8"))]
    )
    searches = Searches(tmp_path / "runs", scorer, problems, 0)
    large, small = (_read(searches.run("best_of_n", n)) for n in (8, 4))
    for more, less in zip(large.searches, small.searches, strict=True):
        assert more.candidates.answers[:4] == less.candidates.answers
        assert more.candidates.scores[:4].tolist() == less.candidates.scores.tolist()
        assert less.policy_tokens < more.policy_tokens
        assert less.scorer_tokens > 0
    beam = _read(searches.run("beam", 4))
    assert all(each.has_choice and each.scorer_tokens > each.policy_tokens for each in beam.searches)
    before = sorted(searches.run_dir("beam", 4).rglob("*.parquet"))
    searches.run("beam", 4)
    assert sorted(searches.run_dir("beam", 4).rglob("*.parquet")) == before


def _read(run_dir: Path) -> SearchRun:
    return search_run(stored_search(storage_at(str(run_dir))), run_dir.name)


def _run(
    problem: str, right: Sequence[bool], scores: Sequence[float], *, chosen: int = 0, policy: int, scorer: int
) -> SearchRun:
    """A run with one problem. `policy` and `scorer`: tokens."""
    of = Candidates(
        scores=np.array(scores), right=np.array(right), graded=np.ones(len(right), bool), answers=("7",) * len(right)
    )
    search = ProblemSearch(
        problem_id=problem,
        known=True,
        right=right[chosen],
        has_choice=True,
        score=scores[chosen],
        step_scores=(scores[chosen],),
        confidence=scores[chosen],
        trusted=None,
        policy_tokens=policy,
        scorer_tokens=scorer,
        seconds=1.0,
        candidates=of,
    )
    return SearchRun(
        name="run",
        method="best_of_n",
        n=len(right),
        accept=None,
        calibrated=False,
        independent=True,
        settings={},
        searches=(search,),
    )


def test_runs_with_a_problem_in_common_are_not_taken_together() -> None:
    one, other, again = (_run(name, [True], [0.5], policy=1, scorer=1) for name in ("a", "b", "a"))
    assert pooled([one, other]).problem_ids == ["a", "b"]
    with pytest.raises(ValueError, match="a problem in common"):
        pooled([one, other, again])


def test_a_line_holds_the_accuracy_of_each_run_and_of_all() -> None:
    right, scores = [True, False, False], [0.2, 0.9, 0.4]
    chains = pooled([_run(name, right, scores, policy=60, scorer=30) for name in "abc"])
    runs = [_run(name, right, scores, chosen=at, policy=20, scorer=10) for name, at in (("a", 0), ("b", 0), ("c", 1))]
    too_small = pooled([_run(name, right[:1], scores[:1], policy=2, scorer=1) for name in "abc"])
    line = line_of(runs, [too_small, chains])
    assert line.of_runs == (1.0, 1.0, 0.0)
    assert line.found.accuracy.value == pytest.approx(2 / 3)
    assert (line.found.policy_tokens, line.found.scorer_tokens, line.bound) == (20, 10, 1.0)
    # One chain for as many tokens, which is right once in three times.
    assert line.equal.k == pytest.approx(1)
    assert line.equal.best_of_k.value == pytest.approx(1 / 3)
    assert line.equal.difference.value == pytest.approx(1 / 3)
    (of_line,) = [text for text in lines([line]) if text.startswith("best_of_n")]
    assert of_line.split()[:3] == ["best_of_n", "3", "0.667"]
    assert "+0.333" in of_line


@given(st.lists(st.booleans(), min_size=1, max_size=6), st.integers(1, 8))
def test_the_bound_is_the_share_of_draws_with_a_right_candidate(right: list[bool], n: int) -> None:
    run = _run("p", right, [0.5] * len(right), policy=1, scorer=1)
    drawn = list(combinations(right, min(n, len(right))))
    assert bound_by_size(run, [n])[0, 0] == pytest.approx(np.mean([any(each) for each in drawn]))


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.5, 0.9])), min_size=2, max_size=8))
def test_the_scorers_area_is_the_share_of_pairs_in_order(candidates: list[tuple[bool, float]]) -> None:
    run = _run("p", [right for right, _ in candidates], [score for _, score in candidates], policy=1, scorer=1)
    pairs = [
        (good > bad) + 0.5 * (good == bad)
        for is_right, good in candidates
        for is_other, bad in candidates
        if is_right and not is_other
    ]
    assert scorer_auc(run) == pytest.approx(np.mean(pairs) if pairs else float("nan"), nan_ok=True)
