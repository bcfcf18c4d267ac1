"""Golden runs of the commands that `runs` leaves out, with oracles over small inputs: one scene is a folder in which commands
follow each other, so that many of them share a run. What each of them comes to is stored under the name of its capability.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.guard.digests import made, masked, unspaced
from tests.guard.runs import ORDERLY
from tests.guard.terminal import ROOT, Answer, Part, run_parts
from tests.tiny.policy import ASSET

Row = dict[str, Any]

ONE_AT_A_TIME = "cluster.workers=1 run.units_in_flight=1 run.flush_seconds=3600"
"""Nothing depends on which of two is faster, nor on how long anything takes."""
GRADED = f"{ONE_AT_A_TIME} grader.deadline_seconds=60"
CHAINS = "data=processbench data.path=chains.jsonl"
LABEL = f"label {ORDERLY} run.flush_seconds=3600 grader.deadline_seconds=60 estimator=fixed"
CHECK = f"{ONE_AT_A_TIME} processes=1 verifier.deadline_seconds=600"
BLURRED = "scorer=lab scorer.oracle.auc=0.8 scorer.lab.slope=2 scorer.lab.shift=0.7"
RUN = "run.json"
TREES = "policy.oracle.world=tree"
SEARCH = (
    f"search data.path=sums.jsonl policy=oracle {TREES} scorer=oracle scorer.oracle.world=tree scorer.oracle.auc=0.7 "
    f"{GRADED} run.report=false search.n=4"
)
TIMES = (
    r'(?:(?<=_hours": )|(?<=_per_second": ))(\{[^}]*\}|[\d.e-]+)|(?<=tokens/s ).*(?= per worker)|'
    r"(?<=\d  )[\d.–]+(  \d+:\d\d:\d\d.*)?$|(?<=alone  ).*|^  [\d.]+–[\d.]+(  \d+:.*)?$|(?<=starts  )\d+(?= s of)"
)
"""What a pilot has measured."""
SECONDS = r"(?:(?<=  \d{3}  )|(?<=,\d{3}  ))[\d.]+$"
"""Behind the tokens of a search."""
LEARNED = (
    r'(?:(?<="loss": )|(?<="auc": )|(?<="accuracy": )|(?<="brier": ))[\d.e-]+|'
    r"(?<=[a-zA-Z] )\d\.\d{4}|(?<=; )\d+ s$"
)
"""Losses and metrics: weights are not the same everywhere."""
SEARCHES, PICKERS = (
    tuple(sorted(path.stem for path in (ROOT / "conf" / group).glob("*.yaml"))) for group in ("search", "grow")
)
"""All that there are, new ones too."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A command in a scene. `name`: its capability and, after a blank, which of its golden runs this is; without a name nothing
    of it is stored. `made`: the folders and files that are looked at when the scene has ended. `needs`: a package. `varying`:
    what differs from machine to machine in what is printed and written."""

    line: str
    name: str = ""
    made: Sequence[str] = ()
    needs: str = ""
    varying: str = ""

    @property
    def capability(self) -> str:
        return self.name.partition(" ")[0]

    @property
    def which(self) -> str:
        return self.name.partition(" ")[2]

    @property
    def possible(self) -> bool:
        return not self.needs or find_spec(self.needs) is not None


def _chains() -> Sequence[Step]:
    """A run of chains that people have labelled, and all that reads it."""
    at = "run_dir=run"
    return (
        Step(line=f"{LABEL} {CHAINS} estimator.rule=threshold {at}"),
        Step(
            name="score file", line=f"score {BLURRED} {at} {ONE_AT_A_TIME} out=scores.parquet", made=["scores.parquet"]
        ),
        Step(
            name="score folder",
            line=f"score scorer=oracle {CHAINS} {GRADED} aggregation=min out=scored",
            made=["scored"],
        ),
        Step(
            name="judge oracle",
            line=f"judge judge=oracle judge.name=strict judge.votes=3 {at} {ONE_AT_A_TIME}",
            made=["run/judges/strict"],
        ),
        *(
            Step(
                name=f"check {kind}",
                line=f"check verifier={kind} checks=[{kind}] {at} {CHECK}",
                made=[f"run/checks/{kind}"],
            )
            for kind in ("arithmetic", "algebra")
        ),
        Step(name="check facts", line=f"check data=facts verifier=facts run_dir=facts {CHECK}", made=["facts"]),
        Step(
            name="check z3",
            line=f"check data.path=formal.jsonl verifier=z3 run_dir=formal {CHECK}",
            made=["formal"],
            needs="z3",
        ),
        Step(name="agree labels", line=f"agree {CHAINS} {at} resamples=200 out=agree.json", made=["agree.json"]),
        Step(
            name="agree scores",
            line=f"agree {CHAINS} scores=scores.parquet threshold=dev dev=a resamples=200 out=dev.json",
            made=["dev.json"],
        ),
        Step(
            name="calibrate scores",
            line=f"calibrate scores=scores.parquet {at} least_prefixes=20 group_prefixes=50 out=calibration.json",
            made=["calibration.json"],
        ),
        Step(
            name="score calibrated",
            line=f"score {BLURRED} {at} {ONE_AT_A_TIME} calibration=calibration.json out=calibrated.jsonl",
            made=["calibrated.jsonl"],
        ),
        Step(line="copy run agreed"),
        Step(
            name="relabel consensus",
            line="relabel run_dir=agreed estimator.rule=consensus consensus.witnesses=[judge:strict,checks:arithmetic]",
            made=["agreed"],
        ),
        Step(
            name="agree consensus",
            line=f"agree {CHAINS} run_dir=agreed resamples=200 out=both.json",
            made=["both.json"],
        ),
        Step(name="audit witnesses", line="audit run_dir=agreed"),
    )


def _searches() -> Sequence[Step]:
    return (
        *(
            Step(name=f"search {method}", line=f"{SEARCH} search={method} run_dir={method}", made=[method])
            for method in SEARCHES
        ),
        Step(
            name="select searches",
            line=f"select searches=[{','.join(SEARCHES)}] out=searches.json",
            made=["searches.json"],
            varying=SECONDS,
        ),
        Step(name="audit search", line="audit run_dir=mcts"),
    )


def _growths() -> Sequence[Step]:
    """A run whose rollouts write steps, grown by each picker; and its chains as candidates."""
    growing = f"grow.budget=60 grow.budget_unit=rollouts grow.rollouts=4 run.report=false {ONE_AT_A_TIME}"
    return (
        Step(
            line=f"{LABEL} data.path=sums.jsonl {TREES} sampling.rollouts=4 sampling.solutions=4 sampling.store_tokens=true "
            "run_dir=run"
        ),
        *(
            step
            for pick in PICKERS
            for step in (
                Step(line=f"copy run {pick}"),
                Step(name=f"grow {pick}", line=f"grow run_dir={pick} grow={pick} {growing}", made=[pick]),
            )
        ),
        Step(name="audit growth", line="audit run_dir=omegaprm"),
        Step(
            line=f"score scorer=oracle scorer.oracle.world=tree scorer.oracle.auc=0.7 run_dir=run {ONE_AT_A_TIME} "
            "out=scores.parquet"
        ),
        Step(
            name="select candidates",
            line="select scores=scores.parquet run_dir=run n=[1,2,4] out=select.json best=best.jsonl",
            made=["select.json", "best.jsonl"],
        ),
    )


def _plans() -> Sequence[Step]:
    planned = f"plan data=sample {ORDERLY} grader.deadline_seconds=60 plan.tokens_per_second=1000"
    return (
        Step(
            name="plan given",
            line=f"{planned} plan.pilot=false plan.completion_tokens=200 plan.gpus=4 plan.gpu_hour_price=2 plan.out=given.json",
            made=["given.json"],
        ),
        Step(
            name="plan pilot",
            line=f"{planned} estimator=fixed plan.pilot_problems=8 plan.out=pilot.json",
            made=["pilot.json"],
            varying=TIMES,
        ),
    )


def _training() -> Sequence[Step]:
    settings = f"model={ASSET} separator='\\n' epochs=1 learning_rate=3e-3 validation=0.25"
    return (
        Step(line=f"{LABEL} data.path=exercises.jsonl grader.answer_pattern='#([0-9]+)' run_dir=run"),
        *(
            Step(
                name=f"train {target}",
                line=f"train {settings} run_dir=run target={target} out={target}",
                made=[f"{target}/{name}" for name in ("model.safetensors", "train.json")],
                varying=LEARNED,
            )
            for target in ("step", "outcome")
        ),
    )


SCENES: Mapping[str, Callable[[], Sequence[Step]]] = {
    "chains": _chains,
    "searches": _searches,
    "growths": _growths,
    "plans": _plans,
    "training": _training,
}
GOLDEN = tuple(step for scene in SCENES.values() for step in scene() if step.name)


def eggs() -> list[Row]:
    """Sums in words, in the layout of ProcessBench: of each problem a right chain, and one with a planted error."""
    rows = []
    for n in range(24):
        a, b, broken, sold = 3 + n % 7, 12 + n, 2 + n % 5, 4 + n % 3
        for error in (-1, n % 3):
            laid = a * b + (error == 0)
            whole = laid - broken + (error == 1)
            left = whole - sold + (error == 2)
            rows.append({
                "id": f"{'abc'[n % 3]}-{2 * n + (error < 0)}",
                "generator": "hand",
                "problem": f"A farm has {a} rows of {b} eggs. {broken} break and {sold} are sold. How many are left?",
                "answer": str(a * b - broken - sold),
                "steps": [
                    f"There are {a} * {b} = {laid} eggs.", f"{laid} - {broken} = {whole} are whole.",
                    f"We solve {sold}x = {2 * sold}: x = {2 + (error == 1)}.", f"{whole} - {sold} = {left} are left.",
                    f"The answer is {left}.",
                ],
                "label": error if error < 2 else 3,
                "final_answer_correct": error == -1,
            })  # fmt: skip
    return rows


def sums() -> list[Row]:
    """Bare problems; the answer of the last one is not known."""
    known = [{"id": f"sum-{n}", "problem": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(1, 6)]
    return [*known, {"id": "sum-6", "problem": "What is 6 + 6?"}]


def formal() -> list[Row]:
    ages = "(declare-const ann Int) (declare-const bob Int)\n(assert (= ann (* 2 bob)))\n(assert (> bob 3))"
    steps = ["(assert (>= ann 8))", "(assert (> ann 8))", "So it is."]
    return [{"id": "ages", "problem": ages, "answer": "8", "steps": steps}]


def exercises() -> list[Row]:
    """Chains in the alphabet of the tiny model."""
    rows = []
    for n in range(16):
        for wrong in (0, 1):
            steps = [f"{n}*3={3 * n + wrong}", f"{3 * n + wrong}+5={3 * n + wrong + 5}", f"#{3 * n + wrong + 5}"]
            rows.append({"id": f"{n}-{wrong}", "problem": f"{n}*3+5", "answer": str(3 * n + 5), "steps": steps})
    return rows


INPUTS = {"chains": eggs, "sums": sums, "formal": formal, "exercises": exercises}


def _part(folder: Path, steps: Sequence[Step]) -> Part:
    """The commands of a scene, and what its golden ones come to."""
    folder.mkdir()
    for name, rows in INPUTS.items():
        text = "".join(f"{json.dumps(row)}\n" for row in rows())
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    possible = [step for step in steps if step.possible]

    def mask(step: Step, text: str) -> str:
        text = unspaced(masked(text, folder, ROOT))
        return re.sub(step.varying, "0", text, flags=re.MULTILINE) if step.varying else text

    def collect(answers: Sequence[Answer]) -> dict[str, Any]:
        found = {}
        for step, answer in zip(possible, answers, strict=True):
            if answer.code and not step.name:
                raise RuntimeError(f"{step.line} ends with {answer.code}: {answer.err[-2000:]}")
            if answer.code:
                found[step.name] = {"code": answer.code, "refusal": mask(step, answer.err)}
            elif step.name:
                lines = mask(step, answer.out).splitlines()
                found[step.name] = {"told": lines} | {
                    name: made(folder / name, partial(mask, step)) for name in step.made
                }
        return found

    return Part(folder=folder, commands=[step.line for step in possible], collect=collect)


def all_golden(folder: Path) -> dict[str, dict[str, Any]]:
    """What the golden commands come to, by capability and name. Of the settings of runs, those that the first of a capability
    has too are left out."""
    scenes = run_parts({name: _part(folder / name, steps()) for name, steps in SCENES.items()}).values()
    come_to = {name: found for scene in scenes for name, found in scene.items()}
    made: dict[str, dict[str, Any]] = {}
    for step in GOLDEN:
        if step.name in come_to:
            made.setdefault(step.capability, {})[step.which] = come_to[step.name]
    for by_name in made.values():
        runs = [run for one in by_name.values() for run in one.values() if isinstance(run, dict)]
        places = [(run, name) for run in runs for name in run if name.endswith(RUN)]
        first = places[0][0][places[0][1]] if places else {}
        for run, name in places[1:]:
            run[name] = {key: value for key, value in run[name].items() if key not in first or first[key] != value}
    return made
