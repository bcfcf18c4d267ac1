"""Chains of Coq with the truth of `coqc`, which compiles each as a whole file and says where its first error is."""

import random
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.verifiers.base import StepInContext

COMPILER = "/usr/bin/coqc"
_LINE = re.compile(r"line (\d+), characters")
_SECONDS = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """A problem that holds the beginning of a script, and steps that go on with it. `family`: what it is made from."""

    family: str
    problem: str
    steps: tuple[str, ...]

    def contexts(self) -> Iterator[StepInContext]:
        for at, step in enumerate(self.steps):
            yield StepInContext(problem=self.problem, earlier=self.steps[:at], step=step)


def first_rejected(chain: Chain) -> int | None:
    """The first step, from 0, in which `coqc` finds an error, -1 for the problem, None for no step."""
    last_lines = []
    script = ""
    for text in (chain.problem, *chain.steps):
        script += f"{text}\n"
        last_lines.append(script.count("\n"))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chain.v"
        file.write_text(script, "utf-8")
        done = subprocess.run(
            [COMPILER, "-q", "-w", "none", str(file)],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            cwd=folder,
            check=False,
        )
    if done.returncode == 0 or "There are pending proofs" in done.stderr:
        return None
    found = _LINE.search(done.stderr)
    assert found is not None, done.stderr
    line = int(found[1])
    return next((at - 1 for at, last in enumerate(last_lines) if line <= last), None)


def generated(count: int, seed: int) -> list[Chain]:
    """Chains from the templates below, in turn: each as it is, and with one sentence changed, left out or exchanged."""
    pick = random.Random(seed)
    chains: list[Chain] = []
    while len(chains) < count:
        family, make = list(_TEMPLATES.items())[len(chains) % len(_TEMPLATES)]
        problem, steps = make(pick)
        chain = Chain(family=family, problem=problem, steps=tuple(steps))
        chains.append(chain if pick.random() < 0.4 else _changed(chain, pick))
    return chains


def _changed(chain: Chain, pick: random.Random) -> Chain:
    """The chain with an error, or with something that only looks like one."""
    at = pick.randrange(len(chain.steps))
    steps = list(chain.steps)
    match pick.choice(("word", "word", "number", "drop", "exchange", "insert")):
        case "word":
            words = [word for word in _SWAPS if re.search(rf"\b{re.escape(word)}\b", steps[at])]
            if words:
                word = pick.choice(words)
                steps[at] = re.sub(rf"\b{re.escape(word)}\b", pick.choice(_SWAPS[word]), steps[at], count=1)
        case "number":
            steps[at] = re.sub(
                r"\b\d+\b", lambda found: str(int(found[0]) + pick.choice((1, 2, 7))), steps[at], count=1
            )
        case "drop":
            del steps[at]
        case "exchange":
            other = pick.randrange(len(steps))
            steps[at], steps[other] = steps[other], steps[at]
        case _:
            steps.insert(at, pick.choice(_INSERTED))
    return Chain(family=chain.family, problem=chain.problem, steps=tuple(steps) or chain.steps)


_SWAPS = {
    "reflexivity": ("assumption", "discriminate", "exact I", "ring", "symmetry"),
    "induction": ("destruct", "case", "elim"),
    "simpl": ("cbn", "hnf", "split"),
    "split": ("left", "constructor", "right"),
    "left": ("right",),
    "right": ("left",),
    "lia": ("assumption", "tauto", "reflexivity", "nia"),
    "rewrite": ("apply", "rewrite <-"),
    "intros": ("intro", "intuition"),
    "apply": ("exact", "eapply", "rewrite"),
    "exact": ("apply", "refine"),
    "Qed": ("Defined", "Qed"),
    "ring": ("lia", "reflexivity", "field"),
    "tauto": ("assumption", "lia", "firstorder"),
    "IH": ("IHx", "IH'"),
    "H1": ("H2", "H"),
    "H": ("H0", "HH"),
}
_INSERTED = (
    "simpl.", "assumption.", "reflexivity.", "symmetry.", "auto.", "try lia.", "idtac.", "Qed.", "exact I.",
    "discriminate.", "f_equal.", "subst.", "lia.",
)  # fmt: skip


_INTEGERS = "From Coq Require Import Lia ZArith.\nOpen Scope Z_scope.\n"
_LISTS = "Require Import List.\nImport ListNotations.\n"


def _addition(pick: random.Random) -> tuple[str, list[str]]:
    name, by = pick.choice("nmxk"), pick.randrange(1, 4)
    zeros = " + ".join("0" for _ in range(by))
    return f"Theorem t : forall {name} : nat, {name} + ({zeros}) = {name}.", [
        f"Proof. intros {name}.",
        f"induction {name} as [|{name}' IH].",
        "- reflexivity.",
        "- simpl in *.",
        "rewrite IH. reflexivity.",
        "Qed.",
    ]


def _sums(pick: random.Random) -> tuple[str, list[str]]:
    a, b = pick.randrange(2, 40), pick.randrange(2, 40)
    right = a + b if pick.random() < 0.7 else a + b + 1
    return f"Require Import Lia.\nLemma s : forall x y, x = {a} -> y = {b} -> x + y = {right}.", [
        "Proof. intros x y H1 H2.",
        "subst x.",
        "rewrite H2.",
        "lia.",
        "Qed.",
    ]


def _inequality(pick: random.Random) -> tuple[str, list[str]]:
    a, b = pick.randrange(1, 9), pick.randrange(1, 9)
    return (
        f"{_INTEGERS}Goal forall x y, x > {a} -> y >= {b} -> x * 2 + y > {2 * a + b}.",
        [
            "intros x y H1 H2.",
            f"assert (H : x >= {a + 1}). {{ lia. }}",
            f"assert (HH : 2 * x >= {2 * a + 2}) by lia.",
            "lia.",
            "Qed.",
        ],
    )


def _logic(pick: random.Random) -> tuple[str, list[str]]:
    p, q = pick.sample("ABCDEF", 2)
    return f"Lemma comm : forall {p} {q} : Prop, {p} /\\ {q} -> {q} /\\ {p}.", [
        f"Proof. intros {p} {q} H.",
        "destruct H as [H1 H2].",
        "split.",
        "- exact H2.",
        "- exact H1.",
        "Qed.",
    ]


def _choice(pick: random.Random) -> tuple[str, list[str]]:
    side = pick.choice(("left", "right"))
    goal = "A \\/ B"
    return f"Lemma or_i : forall A B : Prop, A -> {goal}.", ["intros A B H.", f"{side}.", "exact H.", "Qed."]


def _lists(pick: random.Random) -> tuple[str, list[str]]:
    name = pick.choice(("xs", "l", "ys"))
    return (
        f"{_LISTS}Theorem app_empty : forall (A : Type) ({name} : list A), {name} ++ [] = {name}.",
        [
            f"Proof. intros A {name}.",
            f"induction {name} as [|x rest IH].",
            "{ reflexivity. }",
            "{ simpl. rewrite IH. reflexivity. }",
            "Qed.",
        ],
    )


def _own_function(pick: random.Random) -> tuple[str, list[str]]:
    at = pick.randrange(2, 7)
    return (
        "Require Import Lia.\nFixpoint double (n : nat) : nat := match n with O => O | S m => S (S (double m)) end.\n"
        "Theorem double_plus : forall n, double n = n + n."
    ), [
        "Proof. induction n as [|n IH].",
        "- simpl. reflexivity.",
        "- simpl. rewrite IH. lia.",
        "Qed.",
        f"Lemma at_one_place : double {at} = {2 * at}. Proof. reflexivity. Qed.",
    ]


def _ring(pick: random.Random) -> tuple[str, list[str]]:
    c = pick.randrange(2, 9)
    middle = 2 * c if pick.random() < 0.7 else 2 * c + 1
    return (
        f"{_INTEGERS}Lemma square : forall x, (x + {c}) * (x + {c}) = x * x + {middle} * x + {c * c}.",
        ["Proof.", "intro x.", "ring.", "Qed."],
    )


def _witness(pick: random.Random) -> tuple[str, list[str]]:
    a, b = pick.randrange(2, 9), pick.randrange(2, 9)
    return f"Lemma ex : exists n : nat, n * {a} = {a * b}.", [
        "Proof.",
        f"exists {b}.",
        "simpl.",
        "reflexivity.",
        "Qed.",
    ]


def _contradiction(pick: random.Random) -> tuple[str, list[str]]:
    a = pick.randrange(1, 9)
    return f"Lemma no : {a} = 0 -> False.", ["Proof. intro H.", "exfalso. discriminate H.", "Qed."]


_TEMPLATES: dict[str, Callable[[random.Random], tuple[str, list[str]]]] = {
    "addition": _addition,
    "sums": _sums,
    "inequality": _inequality,
    "logic": _logic,
    "choice": _choice,
    "lists": _lists,
    "own function": _own_function,
    "ring": _ring,
    "witness": _witness,
    "contradiction": _contradiction,
}
