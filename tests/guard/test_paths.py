"""Names and paths that users wrote into programs of their own, from the documents."""

import importlib
import importlib.util

import pytest

from tests.guard.terminal import ROOT

RIGHT, WRONG = "So \\boxed{0.5}.", "So \\boxed{2}."


def test_grade_is_where_it_was() -> None:
    grade = importlib.import_module("pipeline.grading").grade
    assert grade("1/2", RIGHT).verdict.value == "correct"
    assert grade("1/2", WRONG).verdict.value == "incorrect"


def test_the_reward_function_of_trl_is_where_it_was() -> None:
    reward = importlib.import_module("pipeline.grading.reward")
    assert reward.accuracy_reward([RIGHT, WRONG], answer=["1/2", "1/2"]) == [1.0, 0.0]


def test_verl_loads_the_reward_function_by_its_path() -> None:
    path = ROOT / "pipeline" / "grading" / "reward.py"
    spec = importlib.util.spec_from_file_location("custom_module", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.compute_score(data_source="x", solution_str=RIGHT, ground_truth="1/2", extra_info={})
    assert (found["score"] if isinstance(found, dict) else found) == 1.0


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("pipeline.__main__", ["main"]),
        ("pipeline.grading.reward", ["accuracy_reward", "compute_score"]),
        ("pipeline.train.data", ["StepCollator", "StepDataset"]),
        ("pipeline.train.settings", ["TrainConfig"]),
        ("pipeline.train.losses", ["batch_loss"]),
    ],
)
def test_names_of_the_readme_are_where_they_were(module: str, names: list[str]) -> None:
    if module.startswith("pipeline.train"):
        pytest.importorskip("torch")
    found = importlib.import_module(module)
    assert all(hasattr(found, name) for name in names)


def test_a_data_set_is_made_as_the_readme_says() -> None:
    pytest.importorskip("torch")
    data = importlib.import_module("pipeline.train.data")
    config = importlib.import_module("pipeline.train.settings").TrainConfig(run_dir="out")
    assert config.run_dir == "out"
    assert callable(data.StepDataset.of_run)
    assert callable(data.StepCollator(pad_id=0))
