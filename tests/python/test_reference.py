"""The reference of the Python functions is what the docstrings say."""

import inspect

import pipeline
import pipeline.core.errors
from pipeline.python.reference import PAGE, page


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "make it again: python -m pipeline.python.reference"


def test_it_has_every_function_and_every_member_of_a_run() -> None:
    text = page()
    assert "UsageError" in pipeline.__all__
    for name in {*pipeline.__all__} - {*vars(pipeline.core.errors)}:
        assert f"## `{name}" in text
    for name, member in inspect.getmembers(pipeline.Run):
        if not name.startswith("_") and member is not None:
            assert f"### `{name}" in text, name


def test_arguments_are_a_list_and_annotations_are_short() -> None:
    text = page()
    assert "- `run_dir`: Where the run is stored." in text
    assert "Args:" not in text
    assert "polars." not in text.partition("## `Run`")[2].replace("polars reads", "")
