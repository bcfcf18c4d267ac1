"""Judges a vLLM by its sources: a line for each thing that we use and that it does not have."""

import ast
from collections.abc import Iterable, Iterator, Sequence

from pipeline.engines.vllm import detokenize, engine
from pipeline.engines.vllm.meter import TokenMeter
from tests.contract.source import Found, Source, is_abstract
from tests.contract.uses import DETOKENIZER, Use, Variable

ENVIRONMENT = ("vllm.envs", "environment_variables")
STAT_LOGGER = "vllm.v1.metrics.loggers:StatLoggerBase"
PROMETHEUS = "vllm.v1.metrics.loggers:PrometheusStatLogger"
PROMPT = "vllm.inputs:TokensPrompt"
FINISHES = ("vllm.v1.engine", "FINISH_REASON_STRINGS")


def complaints(source: Source, used: Iterable[Use], environment: Iterable[Variable]) -> list[str]:
    """Nothing where this vLLM has all that we use. Raises LookupError where the folder holds no vLLM."""
    if source.module("vllm") is None:
        raise LookupError(f"there is no vllm in {source.folder}")
    known = set(_texts(source, *ENVIRONMENT))
    missing = [f"{each.where}: vLLM knows no variable {each.name}" for each in environment if each.name not in known]
    return [*(said for use in used if (said := _fault(source, use))), *missing, *_kept(source)]


def _fault(source: Source, use: Use) -> str | None:
    here = source.named(use.root)
    if here is None:
        return f"{use.where}: there is no {use.root}"
    owner, reached = here, use.root
    for number, name in enumerate(use.path):
        members = source.members(owner)
        if name not in members:
            return f"{use.where}: {reached} has no {name}"
        here, reached = members[name], f"{reached}.{name}"
        if number + 1 < len(use.path):
            kind = source.type_of(here, owner)
            if kind is None and source.is_foreign(here):
                return None
            if kind is None:
                return f"{use.where}: the source does not tell what {reached} is"
            owner = kind
    return _call_fault(source, here, use, reached) if use.keywords is not None else None


def _call_fault(source: Source, called: Found, use: Use, reached: str) -> str | None:
    signature = source.parameters(called)
    if signature is None:
        return f"{use.where}: {reached} cannot be called"
    positional, every, takes_any = signature
    assert use.keywords is not None
    if not takes_any and (unknown := use.keywords - every):
        return f"{use.where}: {reached} takes no {', '.join(sorted(unknown))}"
    if use.positional > len(positional):
        return f"{use.where}: {reached} takes {len(positional)} values, not {use.positional}"
    return None


def _kept(source: Source) -> Iterator[str]:
    """What syntax cannot tell of our files. Each line names the place that relies on it."""
    update = source.members(_named(source, DETOKENIZER))["update"]
    if isinstance(update.node, ast.FunctionDef):
        named = [argument.arg for argument in update.node.args.args]
        if named != detokenize._UPDATE:
            yield f"detokenize.StoppingDetokenizer.update: vLLM passes {named}"
    yield from _logger_faults(source)
    reasons = set(_texts(source, *FINISHES))
    for reason in {*engine._FINISHES, engine._FAILED, "abort"} - reasons:
        yield f"engine.VllmEngine._complete: there is no finish reason {reason!r}"
    if "prompt_token_ids" not in source.members(_named(source, PROMPT)):
        yield "engine.VllmEngine._complete: a prompt has no prompt_token_ids"
    if source.named(PROMETHEUS) is None:
        yield f"meter.leave_prometheus_out: there is no {PROMETHEUS}"


def _logger_faults(source: Source) -> Iterator[str]:
    """vLLM calls our TokenMeter as one of its own loggers."""
    members = source.members(_named(source, STAT_LOGGER))
    called = [name for name, each in members.items() if each.node and is_abstract(each.node) and name != "__init__"]
    for name in called:
        if not callable(getattr(TokenMeter, name, None)):
            yield f"meter.TokenMeter: vLLM calls its {name}"
    record = source.parameters(members["record"])
    ours: Sequence[str] = TokenMeter.record.__code__.co_varnames[1:3]
    if record is None or tuple(record[0][:2]) != tuple(ours):
        yield f"meter.TokenMeter.record: vLLM passes {record and record[0]}, not {list(ours)}"


def _named(source: Source, place: str) -> Found:
    found = source.named(place)
    if found is None or not isinstance(found.node, ast.ClassDef):
        raise LookupError(f"there is no class {place}")
    return found


def _texts(source: Source, module: str, name: str) -> Iterator[str]:
    """The strings in what is assigned to a name: the keys of a dictionary, the items of a tuple."""
    found = source.find(module, name)
    if found is None or not isinstance(found.node, ast.Assign | ast.AnnAssign) or found.node.value is None:
        raise LookupError(f"{module} has no {name}")
    value = found.node.value
    parts = value.keys if isinstance(value, ast.Dict) else getattr(value, "elts", [])
    yield from (part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))
