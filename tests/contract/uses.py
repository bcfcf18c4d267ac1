"""What we use of vLLM, derived from the syntax of our own files, so that no second list has to be kept.

Derived are imports from vllm, calls of what was imported with their keywords, attributes that are read of it, the keywords in
the dictionaries of DICTIONARIES, and the names of environment variables. Syntax does not tell of which class a variable is, so
ROOTS names the variables that hold an object of vLLM. An entry of either table that its file does not have is an error.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tests.checkout import ROOT

LOADED = "pipeline/engines/vllm/loaded.py"
ENGINE = "pipeline/engines/vllm/engine.py"
POOLING = "pipeline/engines/vllm/pooling.py"
DETOKENIZE = "pipeline/engines/vllm/detokenize.py"
METER = "pipeline/engines/vllm/meter.py"
ARGUMENTS = "pipeline/engines/vllm/arguments.py"
GENERATE = "tests/bench/raw_generate.py"
SCRIPT = "tests/bench/straightforward/script.py"

ASYNC_LLM = "vllm.v1.engine.async_llm:AsyncLLM"
ENGINE_ARGUMENTS = "vllm.engine.arg_utils:AsyncEngineArgs"
DETOKENIZER = "vllm.v1.engine.detokenizer:IncrementalDetokenizer"
SAMPLING = "vllm.sampling_params:SamplingParams"
OUTPUT = "vllm.outputs:RequestOutput"
SAMPLE = "vllm.outputs:CompletionOutput"

ROOTS: Mapping[str, Mapping[str, str]] = {
    LOADED: {"self.engine": ASYNC_LLM, "engine": ASYNC_LLM, "platform": "vllm.platforms.interface:Platform"},
    ENGINE: {"self._engine": ASYNC_LLM, "output": OUTPUT, "sample": SAMPLE, "model": "vllm.config.model:ModelConfig"},
    POOLING: {
        "self._engine": ASYNC_LLM,
        "output": OUTPUT,
        "sample": SAMPLE,
        "pooled": "vllm.outputs:PoolingRequestOutput",
        "drawn": "vllm.outputs:PoolingOutput",
        "registry": "vllm.model_executor.models.registry:_ModelRegistry",
    },
    DETOKENIZE: {
        "engine": ASYNC_LLM,
        "processor": "vllm.v1.engine.output_processor:OutputProcessor",
        "state": "vllm.v1.engine.output_processor:RequestState",
        "request": "vllm.v1.engine:EngineCoreRequest",
        "detokenizer": DETOKENIZER,
        "inner": DETOKENIZER,
        "self._inner": DETOKENIZER,
    },
    METER: {
        "engine": ASYNC_LLM,
        "manager": "vllm.v1.metrics.loggers:StatLoggerManager",
        "scheduler_stats": "vllm.v1.metrics.stats:SchedulerStats",
        "iteration_stats": "vllm.v1.metrics.stats:IterationStats",
        "prompts": "vllm.v1.metrics.stats:PromptTokenStats",
    },
    GENERATE: {"llm": "vllm.entrypoints.llm:LLM", "output": OUTPUT},
    SCRIPT: {"self.llm": "vllm.entrypoints.llm:LLM", "output": OUTPUT, "sample": SAMPLE},
}
"""Per file: an expression that holds an object of vLLM, and its class."""

DICTIONARIES: Mapping[tuple[str, str, str], str] = {
    (ARGUMENTS, "engine_arguments", ""): ENGINE_ARGUMENTS,
    (ARGUMENTS, "_speculative", ""): "vllm.config.speculative:SpeculativeConfig",
    ("tests/bench/raw.py", "raw_engine", "sampling"): SAMPLING,
}
"""(file, function, key): the dictionaries of this function, or the one at this key, are keywords of that class."""

_VARIABLE = re.compile(r"\bVLLM_[A-Z0-9_]+\b")
_LOOKS_UP = ("getattr", "hasattr")


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Something of vLLM that `where` (file:line) needs: the attribute at the end of `path` from `root`.

    `keywords` and `positional` (a number) are how it is called. None: it is not called.
    """

    where: str
    root: str
    path: tuple[str, ...] = ()
    keywords: frozenset[str] | None = None
    positional: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """An environment variable of vLLM that `where` sets."""

    where: str
    name: str


def our_files() -> dict[str, str]:
    """Our Python files that name vLLM, with their texts: those of the pipeline and of the benches."""
    found = [*(ROOT / "pipeline").rglob("*.py"), *(ROOT / "tests" / "bench").rglob("*.py")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(found)}
    return {name: text for name, text in texts.items() if "vllm" in text.lower()}


def recipes() -> dict[str, str]:
    """Files that set variables for containers and jobs."""
    found = [path for path in (ROOT / "docker").iterdir() if path.suffix != ".md"]
    return {path.relative_to(ROOT).as_posix(): path.read_text("utf-8") for path in sorted(found)}


def uses(files: Mapping[str, str]) -> list[Use]:
    """What these files use. Raises LookupError for an entry of ROOTS or DICTIONARIES that they do not have."""
    found: list[Use] = []
    for file, text in files.items():
        tree = ast.parse(text)
        imported = dict(_imported(tree))
        roots = {**imported, **ROOTS.get(file, {})}
        found.extend(Use(where=file, root=place) for place in imported.values())
        here = list(_attributes(file, tree, roots))
        found.extend(here)
        for expression, place in ROOTS.get(file, {}).items():
            if not any(use.root == place for use in here):
                raise LookupError(f"{file} reads nothing of {expression} any more: see ROOTS of tests/contract/uses.py")
    for (file, function, key), place in DICTIONARIES.items():
        if file in files:
            found.append(_dictionary(file, ast.parse(files[file]), function, key, place))
    return found


def variables(files: Mapping[str, str]) -> list[Variable]:
    """The variables in the strings of Python files, and anywhere in others. Names in docstrings count too."""
    found: list[Variable] = []
    for file, text in files.items():
        texts = [text] if not file.endswith(".py") else [value for _, value in _strings(ast.parse(text))]
        names = {name for each in texts for name in _VARIABLE.findall(each) if not name.endswith("_")}
        found.extend(Variable(where=file, name=name) for name in sorted(names))
    return found


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Local names of what is imported from vllm, with `module:name`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "vllm" and not node.level:
            yield from ((alias.asname or alias.name, f"{node.module}:{alias.name}") for alias in node.names)


def _attributes(file: str, tree: ast.Module, roots: Mapping[str, str]) -> Iterator[Use]:
    """Longest chains first: `a.b.c` is one use, not two."""
    seen: set[ast.AST] = set()
    for node in ast.walk(tree):
        called = node if isinstance(node, ast.Call) else None
        if called and isinstance(called.func, ast.Name) and called.func.id in _LOOKS_UP:
            looked = _looked_up(called, roots)
            if looked:
                yield Use(where=f"{file}:{node.lineno}", root=looked[0], path=looked[1])  # type: ignore[attr-defined]
            continue
        chain = called.func if called else node
        if chain in seen or not isinstance(chain, ast.Attribute | ast.Name):
            continue
        parts = _chain(chain, roots, seen)
        if parts is None or (called is None and not parts[1]):
            continue
        if called:
            seen.add(chain)
        keywords = frozenset(word.arg for word in called.keywords if word.arg) if called else None
        positional = sum(not isinstance(given, ast.Starred) for given in called.args) if called else 0
        yield Use(
            where=f"{file}:{chain.lineno}", root=parts[0], path=parts[1], keywords=keywords, positional=positional
        )


def _chain(node: ast.expr, roots: Mapping[str, str], seen: set[ast.AST]) -> tuple[str, tuple[str, ...]] | None:
    """The root and the attributes after it, through subscripts; every part is then seen. None where it has no root."""
    path: list[str] = []
    passed: list[ast.AST] = []
    while True:
        if (name := ast.unparse(node)) in roots:
            seen.update(passed)
            return roots[name], tuple(reversed(path))
        passed.append(node)
        if isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            node = node.value
        else:
            return None


def _looked_up(call: ast.Call, roots: Mapping[str, str]) -> tuple[str, tuple[str, ...]] | None:
    """`getattr(root, "name")`."""
    if len(call.args) < 2 or not isinstance(call.args[1], ast.Constant) or not isinstance(call.args[1].value, str):
        return None
    found = _chain(call.args[0], roots, set())
    return (found[0], (*found[1], call.args[1].value)) if found else None


def _dictionary(file: str, tree: ast.Module, function: str, key: str, place: str) -> Use:
    named = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == function]
    body = named[0] if named else None
    if body is None:
        raise LookupError(f"{file} has no function {function} any more: see DICTIONARIES of tests/contract/uses.py")
    literals = [node for node in ast.walk(body) if isinstance(node, ast.Dict)]
    if key:
        literals = [
            value
            for literal in literals
            for name, value in zip(literal.keys, literal.values, strict=True)
            if isinstance(name, ast.Constant) and name.value == key and isinstance(value, ast.Dict)
        ]
    names = {
        name.value
        for literal in literals
        for name in literal.keys
        if isinstance(name, ast.Constant) and isinstance(name.value, str)
    }
    if not names:
        raise LookupError(
            f"{function} of {file} makes no dictionary any more: see DICTIONARIES of tests/contract/uses.py"
        )
    return Use(where=f"{file}:{body.lineno}", root=place, keywords=frozenset(names))


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
