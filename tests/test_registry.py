"""Registries: what they hold, and what they say of a name that nobody has and of a plug-in that fails."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from pipeline.core.errors import PluginError, UsageError
from pipeline.core.registry import Registry
from pipeline.engines.base import Policy
from pipeline.engines.registry import ENGINES
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS
from pipeline.graders.base import Checker, Grader
from pipeline.graders.registry import GRADERS


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
