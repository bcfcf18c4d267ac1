"""Registries, and how `tests.names` finds code that asks for an implementation by its name."""

import ast
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from pipeline.core.errors import PluginError, UsageError
from pipeline.core.registry import Registry
from pipeline.engines.base import Policy
from pipeline.engines.registry import ENGINES
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS
from pipeline.graders.base import Checker, Grader
from pipeline.graders.registry import GRADERS
from tests.names import homes, named, questions


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


@pytest.mark.parametrize(
    ("registry", "kinds"), [(ESTIMATORS, (Estimator,)), (ENGINES, (Policy,)), (GRADERS, (Checker, Grader))]
)
def test_ours_are_what_the_registry_asks_for(registry: Registry[type], kinds: tuple[type, ...]) -> None:
    for name in registry.ours:
        found = registry.load(name)
        assert set(kinds) & set(found.__mro__)
        settings = found.Config()  # type: ignore[attr-defined]
        assert settings.implementation == name
        assert registry.plugin(name) is None


def test_a_name_that_nobody_has_is_reported_with_the_nearest() -> None:
    with pytest.raises(
        UsageError, match=r"estimator\.name=poold: there is no such estimator here: did you mean pooled\?"
    ):
        ESTIMATORS.load("poold")


def test_what_a_plug_in_raises_is_reported_with_where_it_comes_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Part:
        def learn(self) -> None:
            raise IndexError("y")

    class Broken:
        size = 3
        learner = Part()

        def work(self) -> None:
            raise KeyError("x")

        def refuse(self) -> None:
            raise UsageError("as it says")

    point = EntryPoint("n", "m:o", "stepvalue.estimators")
    monkeypatch.setattr("pipeline.core.registry._installed", lambda: EntryPoints([point]))
    registry: Registry[type] = Registry(
        "estimators", noun="estimator", setting="estimator.name", ours={}, needs=(), parts=("learner",)
    )
    made = registry.guard("n", Broken())
    whose = r"^estimator n of an unknown distribution \? \(stepvalue\.estimators: n = m:o\) failed in "
    assert made.size == 3
    with pytest.raises(PluginError, match=whose + r"work: KeyError: 'x'$"):
        made.work()
    with pytest.raises(PluginError, match=whose + "learn: IndexError: y$"):
        made.learner.learn()
    with pytest.raises(UsageError, match="as it says"):
        made.refuse()
