"""Names and paths that users wrote into programs of their own, from the documents."""

import importlib

import pytest


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("pipeline.__main__", ["main"]),
        ("pipeline.graders.reward", ["accuracy_reward", "compute_score"]),
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
