"""What `search` warns of before it begins."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.cli.compose import compose
from pipeline.cli.search import SEARCH
from pipeline.config.search import SearchRunConfig
from pipeline.core.errors import UsageError
from pipeline.engines.registry import policy_for
from pipeline.runtime.searching.task import check_search, doubts
from pipeline.scorers.calibration import encode
from tests.scorers.test_calibration import made_from, two_maps

pytestmark = pytest.mark.slow


def settings(*words: str) -> SearchRunConfig:
    common = ["data.path=x.jsonl", "run_dir=out", "policy=oracle", "search=beam"]
    found: SearchRunConfig = compose(SEARCH, [*common, *words]).settings()
    return found


def model(folder: Path, **config: Any) -> str:
    """A model folder with this config.json."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


@pytest.mark.parametrize("served", [False, True])
def test_steps_that_the_splitter_divides_otherwise_than_those_of_the_training(served: bool, tmp_path: Path) -> None:
    trained = model(tmp_path / "prm", stepvalue_separator="\n\n", stepvalue_steps="data.splitter=newline")
    words = [f"scorer.model={trained}"]
    if served:
        words += ["scorer=openai", "scorer.openai.urls=[http://127.0.0.1:8000/v1]"]
    assert list(doubts(settings(*words))) == []
    (line,) = doubts(settings(*words, "data.splitter=blank_line"))
    assert f"scorer.model={trained} is trained on steps as data.splitter=newline divides them" in line
    assert "data.splitter=blank_line divides these" in line
    pattern = settings(*words, "data.splitter=regex", "data.pattern='[.;]'")
    assert "data.splitter=regex data.pattern='[.;]'" in next(doubts(pattern))


def test_published_models_are_known_by_their_kind() -> None:
    for scorer, fits, other in (("qwen", "blank_line", "newline"), ("skywork", "newline", "blank_line")):
        words = [f"scorer={scorer}", "scorer.model=org/name"]
        assert list(doubts(settings(*words, f"data.splitter={fits}"))) == []
        (line,) = doubts(settings(*words, f"data.splitter={other}"))
        assert f"data.splitter={fits} divides them" in line


def test_a_model_of_which_nothing_is_known_is_not_doubted(tmp_path: Path) -> None:
    configs: list[dict[str, Any]] = [{}, {"stepvalue_separator": "\n"}, {"stepvalue_steps": 3}]
    for number, config in enumerate(configs):
        trained = model(tmp_path / str(number), **config)
        assert list(doubts(settings(f"scorer.model={trained}", "data.splitter=sentence"))) == []
    assert list(doubts(settings(f"scorer.model={tmp_path / 'nowhere'}"))) == []


def test_another_separator_than_that_of_the_training(tmp_path: Path) -> None:
    trained = model(tmp_path / "prm", stepvalue_separator="\n")
    assert list(doubts(settings(f"scorer.model={trained}", r"scorer.separator='\n'"))) == []
    (line,) = doubts(settings(f"scorer.model={trained}", r"scorer.separator='\n\n'"))
    assert "is not the separator of the training" in line


def test_a_confidence_is_compared_with_scores_that_are_no_probabilities() -> None:
    (line,) = doubts(settings("scorer=oracle", "search.accept=0.9"))
    assert line.startswith("search.accept=0.9 is compared with the scorer's own scores")
    assert "calibration=FILE" in line
    assert list(doubts(settings("search=majority", "search.accept=0.9"))) == []


def test_a_calibration_of_another_policy(tmp_path: Path) -> None:
    config = settings("scorer=oracle", "search.accept=0.9", f"calibration={tmp_path / 'cal.json'}")
    policy = asyncio.run(policy_for(config.policy).facts(config.sampling)).policy
    for name, warned in ((policy, False), ("org/another", True)):
        made = replace(two_maps(), made_from=made_from(policy=name))
        (tmp_path / "cal.json").write_text(encode(made, {}))
        found = list(doubts(config))
        assert bool(found) is warned
        if warned:
            assert f"is for the policy org/another, and {policy} searches" in found[0]


def test_a_gate_above_all_that_a_calibration_gives(tmp_path: Path) -> None:
    """The highest value is 0.95: both maps count, for a chain may be of any length."""
    config = settings("scorer=oracle", "search.accept=0.96", f"calibration={tmp_path / 'cal.json'}")
    first, second = two_maps().maps
    second = replace(second, values=tuple(min(0.95, each) for each in second.values))
    policy = asyncio.run(policy_for(config.policy).facts(config.sampling)).policy
    made = replace(two_maps(), made_from=made_from(policy=policy), maps=(first, second))
    (tmp_path / "cal.json").write_text(encode(made, {}))
    (line,) = doubts(config)
    assert line.startswith("search.accept=0.96 is above all values of calibration=")
    assert "the highest is 0.950: nothing will be trusted" in line
    lower = replace(config, search=replace(config.search, accept=0.95))
    assert list(doubts(lower)) == []


@pytest.mark.parametrize(
    ("words", "doubted"),
    [
        (["scorer=oracle"], True),
        (["scorer.model={folder}"], True),
        (["scorer=openai", "scorer.model={folder}", "scorer.openai.urls=[http://127.0.0.1:8000/v1]"], True),
        (["scorer=generative", "scorer.model=org/name"], True),
        (["scorer=generative", "scorer.model=org/name", "scorer.votes=8"], False),
    ],
)
def test_a_reliability_that_the_scorer_does_not_state(words: list[str], doubted: bool, tmp_path: Path) -> None:
    folder = model(tmp_path / "prm")
    found = list(
        doubts(settings(*(word.format(folder=folder) for word in words), "search.accept=0.9", "search.reliability=0.5"))
    )
    said = [line for line in found if line.startswith("search.reliability=0.5: this scorer states no reliability")]
    assert len(said) == doubted


TREES = ("policy.oracle.world=tree", "scorer=oracle", "scorer.oracle.world=tree")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (TREES, []),
        ((*TREES, "scorer.oracle.auc=0.7"), []),
        (TREES[:2], ["scorer.oracle.world=flat beside policy.oracle.world=tree"]),
        ((*TREES, "scorer.oracle.seed=3"), ["scorer.oracle.seed=3 beside policy.oracle.seed=0"]),
        (("scorer=oracle",), []),
        (("policy=hf", "policy.model=org/name", "scorer=oracle"), []),
    ],
)
def test_an_oracle_scorer_of_another_world_than_the_policys(words: tuple[str, ...], said: list[str]) -> None:
    assert list(doubts(settings(*words))) == [
        f"{line}: the scores are those of another world's chains" for line in said
    ]


def test_steps_of_the_flat_world_are_refused_because_they_never_end() -> None:
    with pytest.raises(UsageError, match=r"give policy\.oracle\.world=tree"):
        check_search(settings("scorer=oracle"))
    check_search(settings("scorer=oracle", "search=best_of_n"))
    check_search(settings(*TREES))
