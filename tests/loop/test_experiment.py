"""The parts of the experiment: what is drawn has the policy's distribution, labels are those of a run, choices and spreads are
computed rightly."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pipeline.graders.registry import checker_for
from pipeline.train.settings import Loss, TrainConfig
from pipeline.train.targets import step_targets
from tests.loop.arms import POOLED_LABELS, SEEDS, plan, true_rows
from tests.loop.candidates import candidates_of
from tests.loop.choice import Contest, by_scores, without_scores
from tests.loop.plan import SIZE
from tests.loop.pool import PoolPart, completions, pool_part, prefixes_of
from tests.loop.problems import exercises
from tests.loop.replay import Graded, label_settings, labelled
from tests.loop.sampler import Sampler
from tests.loop.spread import components, mean_of
from tests.loop.tables import WAYS, arms_table, differences_table, leads_table, spread_table
from tests.tiny.arithmetic import ALPHABET, Exercise, Move
from tests.tiny.policy import ASSET, TRUTH

EXERCISE = Exercise(first=12, moves=(Move(sign="*", number=3), Move(sign="-", number=9)))


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Threads of so small a model wait for each other: on busy cores it is a hundred times slower with two."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_samplers_logits_are_the_models() -> None:
    tokenizer = AutoTokenizer.from_pretrained(ASSET)
    model = AutoModelForCausalLM.from_pretrained(ASSET, dtype=torch.float32)
    ids = torch.tensor([tokenizer.encode("12*3-9+4\n12*3=36\n36-9=27\n#")])
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, Sampler(0).logits(ids), atol=1e-4)


def test_prompts_are_encoded_as_the_tokenizer_does() -> None:
    """A completion that a prompt determines nearly for sure comes out as text."""
    tokenizer = AutoTokenizer.from_pretrained(ASSET)
    assert [tokenizer.encode(character) for character in ALPHABET] == [[place] for place in range(2, len(ALPHABET) + 2)]
    prompt = "9+9+9\n9+9=18\n18+9=27\n"
    (texts,) = completions(Sampler(1), [prompt], 8).values()
    assert texts.count("#27") >= 4


@pytest.mark.nightly
def test_what_is_drawn_has_the_values_that_vllm_measured() -> None:
    """By chance, 40 prefixes have a chi-square above 80 once in 10,000 times."""
    rows = [json.loads(line) for line in TRUTH.read_text(encoding="utf-8").splitlines()]
    asked = {
        f"{row['problem']}\n" + "".join(f"{step}\n" for step in row["steps"][:k]): (
            row["answer"],
            row["correct"][k] / row["n"],
        )
        for row in rows
        for k in range(len(row["steps"]))
    }
    chosen = [prefix for prefix, (_, value) in asked.items() if 0.02 < value < 0.98][:40]
    drawn, chi_square = completions(Sampler(3), chosen, 64), 0.0
    for prefix in chosen:
        answer, value = asked[prefix]
        share = np.mean([(prefix + text).endswith(f"#{answer}") for text in drawn[prefix]])
        chi_square += (share - value) ** 2 / (value * (1 - value) * (1 / 64 + 1 / 2_000))
    assert len(chosen) == 40
    assert chi_square < 80


@pytest.fixture(scope="module")
def graded() -> Iterator[Graded]:
    """Three chains for an exercise, one of them drawn twice, with two rollouts of each prefix."""
    right, wrong, lucky = "12*3=36\n36-9=27\n#27", "12*3=35\n35-9=26\n#26", "12*3=35\n35-9=27\n#27"
    problem = EXERCISE.problem
    rollouts = {
        f"{problem}\n": (wrong, right),
        f"{problem}\n12*3=36\n": ("36-9=27\n#27", "36-9=26\n#26"),
        f"{problem}\n12*3=36\n36-9=27\n": ("#27", "#27"),
        f"{problem}\n12*3=35\n": ("35-9=26\n#26", "35-9=26\n#26"),
        f"{problem}\n12*3=35\n35-9=26\n": ("#26", "#26"),
        f"{problem}\n12*3=35\n35-9=27\n": ("#27", "#27"),
    }
    part = PoolPart(exercises=(EXERCISE,), draws={problem: (right, wrong, lucky, right)}, rollouts=rollouts)
    assert {prefix for text in part.draws[problem] for prefix in prefixes_of(problem, text)} == set(rollouts)
    with checker_for(label_settings().grader) as checker:
        yield Graded(part=part, checker=checker, sampler=Sampler(0))


def test_labels_are_those_of_the_pools_rollouts(graded: Graded) -> None:
    fixed = label_settings("estimator=fixed").estimator
    found = labelled(graded, [EXERCISE.problem], fixed, draws=4, rollouts=2)
    assert (found.rollouts, len(found.rows)) == (12, 3)
    assert [row["n_correct"][:-1] for row in found.rows] == [[1, 2], [0, 0], [0, 2]]
    assert [row["outcome"] for row in found.rows] == [True, False, True]
    assert [row["root_value"] for row in found.rows] == [0.5] * 3
    fewer = labelled(graded, [EXERCISE.problem], fixed, draws=2, rollouts=1)
    assert (fewer.rollouts, len(fewer.rows)) == (5, 2)
    # 20 characters and the end, for each of two chains; rollouts of the bare problem, and behind one and two steps.
    assert fewer.tokens == 2 * 20 + 20 + 2 * 12 + 2 * 4


def test_pooled_decides_and_follows_what_rollouts_reproduce(graded: Graded) -> None:
    pooled = label_settings("estimator=pooled").estimator
    found = labelled(graded, [EXERCISE.problem], pooled, draws=4, rollouts=2)
    assert 0 < found.rollouts <= 12
    values = {tuple(row["steps"]): row["value"] for row in found.rows}
    right, wrong = (values[steps] for steps in sorted(values, key=lambda steps: "36" not in steps[0])[:2])
    assert right[1] > wrong[1]


def test_what_the_pool_lacks_is_drawn(graded: Graded) -> None:
    fixed = label_settings("estimator=fixed").estimator
    assert labelled(graded, [EXERCISE.problem], fixed, draws=1, rollouts=5).rollouts == 15


def test_a_pool_is_drawn_once(tmp_path: Path) -> None:
    of, said = exercises(random.Random(1), SIZE, 2), list[str]()
    parts = [pool_part(tmp_path / "pool.parquet", of, draws=3, rollouts=2, seed=4, show=said.append) for _ in range(2)]
    assert parts[0] == parts[1]
    assert len(said) == 1
    for exercise in of:
        draws = parts[0].draws[exercise.problem]
        assert len(draws) == 3
        for prefix in {prefix for text in draws for prefix in prefixes_of(exercise.problem, text)}:
            assert len(parts[0].rollouts[prefix]) == 2


def test_true_labels_replace_values_and_labels(graded: Graded) -> None:
    fixed = label_settings("estimator=fixed").estimator
    rows = true_rows(labelled(graded, [EXERCISE.problem], fixed, draws=4, rollouts=1).rows, graded.exercises)
    assert [row["value"] for row in rows] == [[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    for loss in Loss:
        targets = [step_targets(row, TrainConfig(run_dir="x", model="x", out="x", loss=loss)) for row in rows]
        assert [[target.label for target in chain] for chain in targets] == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]
        assert [[target.value for target in chain] for chain in targets] == [[1, 1, 1], [0, 0, 0], [0, 0, 0]]


def test_candidates_repeat_what_is_drawn_twice(graded: Graded) -> None:
    candidates = candidates_of(graded, 4)
    (contest,) = candidates.contests
    assert contest == Contest(groups=(0, 1, 0, 0), right=(True, False, True, True), chains=(0, 1, 2, 0))
    assert [chain.right_so_far for chain in candidates.chains] == [(True,) * 3, (False,) * 3, (False,) * 3]


def test_the_best_score_and_the_weighted_vote_choose() -> None:
    contest = Contest(groups=(0, 1, 1, -1), right=(True, False, False, False), chains=(0, 1, 1, None))
    votes = without_scores([contest], seed=0)
    assert votes["majority 4"].tolist() == [0]
    assert votes["bound 4"].tolist() == [1]
    assert votes["random"].tolist() == [0.25]
    assert by_scores([contest], [0.9, 0.3], "last", seed=0)["best last 4"].tolist() == [1]
    assert by_scores([contest], [0.9, 0.3], "last", seed=0)["weighted last 4"].tolist() == [1]
    assert by_scores([contest], [0.5, 0.3], "last", seed=0)["weighted last 4"].tolist() == [0]
    assert by_scores([contest], [0.2, 0.3], "last", seed=0)["best last 4"].tolist() == [0]


def test_a_mean_has_the_standard_error_of_its_seeds() -> None:
    found = mean_of([0.1, 0.3, 0.2])
    assert (found.value, found.sd, found.error) == pytest.approx((0.2, 0.1, 0.1 / 3**0.5))
    assert np.isnan(mean_of([0.1]).error)


def test_components_of_known_variance_are_found() -> None:
    rng = np.random.default_rng(0)
    training = rng.normal(0, 0.03, 4_000)
    found = components(
        across=(rng.normal(0, 0.04, 4_000) + training).tolist(),
        within=rng.normal(0, 0.03, 4_000).tolist(),
        by_problem=rng.binomial(1, 0.5, (1, 40_000)).astype(float),
        problems=100,
    )
    assert (found.training, found.learned_from, found.chosen_for) == pytest.approx((0.03, 0.04, 0.05), abs=0.003)
    assert found.total == pytest.approx(0.0707, abs=0.003)


def test_every_run_of_the_plan_has_a_name_of_its_own_and_settings_of_train() -> None:
    runs = plan()
    assert len({(run.arm.name, run.seed, run.training_seed) for run in runs}) == len(runs)
    assert [run.seed for run in runs if run.arm is POOLED_LABELS and run.seed == run.training_seed] == list(
        range(SEEDS)
    )
    for run in runs:
        TrainConfig(run_dir="x", model="x", out="x", **run.arm.settings).check()


def _result(arm: str, seed: int, training_seed: int, best: float) -> dict[str, Any]:
    names = [f"{way} {n}" for way in WAYS for n in (4, 8, 16)]
    return {
        "arm": arm,
        "seed": seed,
        "training_seed": training_seed,
        "chains": 10,
        "tokens": 1_000,
        "means": dict.fromkeys(names, best),
        "by_problem": {name: [best + 0.1, best - 0.1] for name in names},
        "step_auc": 0.7,
        "last_auc": 0.8,
    }


def test_tables_have_means_of_seeds_and_leave_repeated_trainings_out() -> None:
    results = [_result("a", 0, 0, 0.3), _result("a", 1, 1, 0.5), _result("a", 0, 101, 0.9), _result("b", 0, 0, 0.4)]
    votes = {f"{name} {n}": [0.2, 0.4] for name in ("majority", "bound") for n in (4, 8, 16)} | {"random": [0.1, 0.1]}
    arms = list(arms_table(results, votes, ["a", "b", "not run"]))
    assert "majority 0.300" in arms[0]
    assert arms[2].split()[:5] == ["a", "2", "10", "1,000", "0.400"]
    assert arms[3].split()[:5] == ["b", "1", "10", "1,000", "0.400"]
    assert len(arms) == 4
    leads = list(leads_table(results, votes, "a"))
    assert "+0.100 +-0.100" in leads[4]
    assert leads[5].split()[-1] == "+-0.200"
    assert leads[6].split()[-1] == "+0.4"
    assert list(differences_table(results, "a", ["b"]))[2].split()[:3] == ["b", "1", "+0.100"]
    spread = list(spread_table(results, votes, "a", problems=2))
    assert "2 seeds and 2 trainings" in spread[0]
    assert len(spread) == 6
