"""How `tests.lint.names` finds code that asks for an implementation by its name."""

import ast
from pathlib import Path

import pytest

from tests.lint.names import homes, named, questions


@pytest.mark.parametrize(
    "source",
    [
        'if config.name == "pooled": pass',
        'x = row["estimator"] in ("fixed", "bisect")',
        'match policy.kind:\n    case "oracle": pass',
        'if config.grader.kind != "math": pass',
        'x = getattr(config, "name") == "pooled"',
        'x = row.get("estimator") == "pooled"',
        'x = str(config.format).lower() == "trl"',
        'x = "oracle" == policy.kind',
        'x = config.implementation == "pooled"',
        'x = {"pooled": 1}[config.name]',
        "match config:\n    case PooledConfig():\n        pass",
        "x = isinstance(config, (settings.HfConfig, EmbeddedConfig))",
    ],
)
def test_a_question_for_a_name_is_seen(source: str) -> None:
    found = {name for _, name in named(ast.parse(source))}
    assert found & homes().keys()


def test_an_implementation_may_ask_for_its_own_name_alone(tmp_path: Path) -> None:
    asking = 'def asked(config):\n    return config.name == "{}"\n'
    files = {
        "estimators/pooled/choice.py": "pooled",
        "estimators/labels.py": "pooled",
        "export/formats/stepwise.py": "trl",
        "export/formats/plain.py": "trl",
        "estimators/registry.py": "fixed",
        "runtime/unit.py": "fixed",
    }
    for file, name in files.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(asking.format(name))
    found = [line.removeprefix(f"{tmp_path}/").partition(":")[0] for line in questions(tmp_path)]
    assert found == ["estimators/labels.py", "export/formats/plain.py", "runtime/unit.py"]
