"""Pure decisions of a run: what it is the result of, and which units are still owed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from pipeline.config.choices import GraderKind, PolicyKind
from pipeline.config.label import LabelConfig
from pipeline.config.recorded import flat
from pipeline.core.ids import content_id
from pipeline.core.records import Goal, Totals
from pipeline.core.schemas import SCHEMA_VERSION
from pipeline.engines.vllm.arguments import RANDOM_WEIGHTS
from pipeline.estimators.kernel import PRIOR_VERSION
from pipeline.graders.choose import grader_version
from pipeline.runtime.ending import stops_at_answer
from pipeline.runtime.goal import reached
from pipeline.runtime.jobs import Job
from pipeline.runtime.worker import Learnt, learnt_by
from pipeline.storage.commits import UNIT, Chain, Commit
from pipeline.storage.run_record import STAGED_INPUT
from pipeline.storage.standing import logged_totals, standing
from pipeline.storage.units import UnitRef

# What does not change the meaning of a label or only asks for more, and the path, for which the hash of the content stands.
_NOT_IDENTITY = {
    "data": {"path"},
    "sampling": {"rollouts", "stop_at_answer"},
    "estimator": {"target_sd", "budget", "run_budget", "budget_unit"},
    "policy": {
        "tensor_parallel",
        "memory_share",
        "kv_cache_gib",
        "max_num_seqs",
        "max_num_batched_tokens",
        "enforce_eager",
        "load_format",
        "device",
    },
    "grader": {"processes", "memory_mib", "cpu_seconds", "suite_seconds", "sandbox"},
}
# What a program may use decides whether it is right; what algebra may use decides only whether there is a verdict.
_CODE_IDENTITY = {"memory_mib", "cpu_seconds", "suite_seconds"}
# An engine's own settings count for its policy alone; how servers are asked is not what they serve.
_ENGINES = ("policy.oracle.", "policy.openai.")
_ENGINE_IDENTITY = {
    PolicyKind.oracle: {"policy.oracle.seed", "policy.oracle.spread", "policy.oracle.tokens_per_step"},
    PolicyKind.openai: {"policy.openai.extensions"},
}
_SECTIONS = ("data", "policy", "sampling", "estimator", "grader")


def identity(config: LabelConfig, input_digest: str, policy_fingerprint: str = "") -> dict[str, object]:
    """What a run directory is the result of, flat: dotted setting -> plain value."""
    facts: dict[str, object] = {
        "input": input_digest,
        "policy_fingerprint": policy_fingerprint,
        "schema": SCHEMA_VERSION,
        "grader_version": grader_version(),
        "run.unit_problems": config.run.unit_problems,
        "kernel_prior": PRIOR_VERSION,
    }
    shaping_code = _CODE_IDENTITY if config.grader.kind is GraderKind.code else set()
    left_out = _NOT_IDENTITY | {"grader": _NOT_IDENTITY["grader"] - shaping_code}
    for section in _SECTIONS:
        values = asdict(getattr(config, section))
        kept = {key: value for key, value in values.items() if key not in left_out.get(section, ())}
        facts.update(flat(section, kept))
    if config.policy.load_format == RANDOM_WEIGHTS:
        facts["policy.load_format"] = RANDOM_WEIGHTS
    # What its null stands for, and nothing where it is off, as in runs from before there was such a setting.
    facts["sampling.stop_at_answer"] = stops_at_answer(config) or None
    shaping = _ENGINE_IDENTITY.get(config.policy.kind, ())
    facts = {key: value for key, value in facts.items() if not key.startswith(_ENGINES) or key in shaping}
    return {**facts, STAGED_INPUT: _input_id(facts)}


def _input_id(facts: dict[str, object]) -> str:
    """Id of the staged input: it depends on the content of the input and on how rows are read."""
    relevant = {
        key: value for key, value in facts.items() if key == "input" or key.startswith(("data.", "grader.", "run."))
    }
    return content_id("input", json.dumps(relevant, sort_keys=True))


def run_name(facts: dict[str, object]) -> str:
    """A folder name for the run: equal for equal facts."""
    return content_id("run", json.dumps(facts, sort_keys=True))[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunState:
    """What the chains of a run amount to: the units that are owed, the records of those that are whole, by unit id, and
    their totals. `logged` counts all rollouts that are committed, those of unfinished units too. `learnt`: the kernel that was
    learnt from most chains.
    """

    jobs: tuple[Job, ...]
    wholes: Mapping[str, Commit]
    totals: Totals
    logged: Totals
    learnt: Learnt | None


def state_of(units: Iterable[UnitRef], chains: Mapping[str, Chain], goals: Mapping[str, Goal]) -> RunState:
    """The state of a run of whose units `goals` are asked, by unit id; jobs in the order of the input."""
    jobs: list[Job] = []
    wholes: dict[str, Commit] = {}
    totals = logged = Totals()
    for unit in units:
        chain = chains.get(unit.unit_id) or Chain(kind=UNIT, chain_id=unit.unit_id)
        found = standing(chain)
        whole = found.whole
        goal = goals[unit.unit_id]
        if whole is None or not reached(whole, goal):
            jobs.append(Job(unit=unit, known_length=chain.length, goal=goal))
        if whole is not None:
            totals += whole.totals
            wholes[unit.unit_id] = whole
        logged += logged_totals(chain)
    learnt = max(filter(None, map(learnt_by, wholes.values())), key=lambda each: each.chains, default=None)
    return RunState(jobs=tuple(jobs), wholes=wholes, totals=totals, logged=logged, learnt=learnt)
