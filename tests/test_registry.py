"""Extension points: the examples in CONTRIBUTING work unchanged, and no code asks for an implementation by name."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import polars as pl
import pytest

from pipeline.core.errors import PluginError, UsageError
from pipeline.core.registry import Registry
from pipeline.engines.base import Policy
from pipeline.engines.registry import ENGINES
from pipeline.estimators.base import Estimator
from pipeline.estimators.registry import ESTIMATORS
from pipeline.graders.base import Checker, Grader
from pipeline.graders.registry import GRADERS
from tests.conftest import ROOT
from tests.guard.terminal import in_turn
from tests.lint.names import homes, named, questions

pytestmark = pytest.mark.slow

BLOCK = re.compile(r"<!-- (file|line): (\S+) -->\n```\w+\n(.*?)```\n", re.DOTALL)


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout with all that CONTRIBUTING adds to it."""
    folder = tmp_path_factory.mktemp("extended")
    for name in ("pipeline", "conf"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for kind, path, text in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")):
        place = folder / path
        if kind == "file":
            assert not place.exists(), path
            place.write_text(text, encoding="utf-8")
        else:
            registry = place.read_text("utf-8")
            place.write_text(registry.replace("    ours={\n", f"    ours={{\n{text}", 1), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "tools",
    [
        (["ruff", "check"], ["ruff", "format", "--check"]),
        pytest.param((["mypy"], ["lint-imports", "--no-cache"]), marks=pytest.mark.nightly),
    ],
)
def test_contributings_examples_pass_lint(tools: Sequence[Sequence[str]], extended: Path) -> None:
    files = [path for kind, path, _ in BLOCK.findall((ROOT / "CONTRIBUTING.md").read_text("utf-8")) if kind == "file"]
    modules = [path for path in files if path.endswith(".py")]
    assert len(modules) == 10
    shutil.copy(ROOT / "pyproject.toml", extended)
    for words in tools:
        done = subprocess.run(
            [str(Path(sys.executable).parent / words[0]), *words[1:], *(modules if words[0] != "lint-imports" else ())],
            cwd=extended,
            env={**os.environ, "PYTHONPATH": str(extended)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert list(questions(extended / "pipeline")) == []


def test_contributings_examples_label_and_export(extended: Path, tmp_path: Path) -> None:
    rows = [
        {"id": str(number), "problem": f"Is {number} even?", "answer": answer, "steps": ["Let me see.", f"It is {said}."]}
        for number, (answer, said) in enumerate([("yes", "yes"), ("no", "yes"), ("yes", "no")])
    ]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bare = [{"id": str(number), "problem": f"What is {number} + 1?", "answer": str(number + 1)} for number in range(3)]
    (tmp_path / "bare.jsonl").write_text("".join(json.dumps(row) + "\n" for row in bare))
    claims = [{"problem": "?", "steps": ["12 is odd.", "4 is even.", "It is so."]}]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claims))
    own = ["estimator=halves", "estimator.share=0.3", "policy=echo", "grader=yes_no"]
    commands = (
        ["label", *own, "data.path=rows.jsonl", "run_dir=run", "sampling.rollouts=4"],
        ["audit", "run_dir=run"],
        ["export", "run_dir=run", "format=counted", "counted.most=1", "out=out", "uncertain=merge"],
        ["score", "run_dir=run", "scorer=brevity", "scorer.half=5", "out=scores.jsonl"],
        ["judge", "run_dir=run", "judge=numerals", "judge.name=mine", "judge.votes=2"],
        ["check", "data.path=claims.jsonl", "run_dir=checked", "checks=[evens,arithmetic]"],
        [
            "search",
            "search=greedy",
            "search.n=2",
            "policy=echo",
            "scorer=brevity",
            "grader=yes_no",
            "data.path=rows.jsonl",
            "run_dir=searched",
        ],
        [
            *("label", "policy=oracle", "policy.oracle.world=tree", "estimator=fixed", "sampling.solutions=2"),
            *("data.path=bare.jsonl", "run_dir=grown", "sampling.rollouts=4", "sampling.store_tokens=true"),
        ],
        ["grow", "run_dir=grown", "grow=doubtful", "grow.least=0.2", "grow.budget=40", "grow.budget_unit=rollouts"],
        ["audit", "run_dir=grown"],
    )
    paths = os.pathsep.join([str(extended), str(ROOT)])
    for words, done in zip(commands, in_turn(tmp_path, commands, {"PYTHONPATH": paths}), strict=True):
        assert done.code == 0, (words, done.err)
    written = [json.loads(line) for line in (tmp_path / "out" / "train.jsonl").read_text().splitlines()]
    assert all(set(row) == {"problem", "good"} for row in written)
    scored = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [row["step_scores"][0] for row in scored] == [0.5 ** (len("Let me see.") / 5)] * 3
    (critiques,) = (tmp_path / "run" / "judges" / "mine" / "critiques").glob("*.parquet")
    assert pl.read_parquet(critiques)["first_error"].to_list() == [1] * 6
    (findings,) = (tmp_path / "checked" / "checks" / "evens" / "findings").glob("*.parquet")
    found = pl.read_parquet(findings)
    assert found["verdict"].to_list() == ["refuted", "holds", "unknown"]
    assert found["evidence"].to_list() == ["12 divided by 2 leaves 0", "4 divided by 2 leaves 0", ""]
    (searches,) = (tmp_path / "searched" / "searches").glob("*.parquet")
    found = pl.read_parquet(searches)
    assert found["method"].to_list() == ["greedy"] * 3
    assert found["candidates"].to_list() == [1] * 3
    promoted = pl.read_parquet(tmp_path / "grown" / "promotions" / "*.parquet")
    assert promoted.height == 5
    assert promoted["gain"].min() >= 0.2  # type: ignore[operator]
    assert "- `counted.most`: `1`\n" in (tmp_path / "out" / "README.md").read_text()


def test_contributings_verifier_verifies(extended: Path, tmp_path: Path) -> None:
    script = """
from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.registry import verifier_named
for step in ("12 is even.", "12 is odd.", "12 is large."):
    found = verifier_named("evens").verify(StepInContext(problem="", earlier=(), step=step))
    print(found.verdict, found.evidence)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(extended), str(ROOT)])},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    reason = "12 divided by 2 leaves 0"
    assert done.stdout.splitlines() == [f"holds {reason}", f"refuted {reason}", "unknown "]


def test_nobody_outside_a_registry_asks_for_a_name() -> None:
    assert list(questions(ROOT / "pipeline")) == []


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
