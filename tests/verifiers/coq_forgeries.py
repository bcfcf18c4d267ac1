"""Generated chains of Coq whose last step proves nothing, or something false, and which a reader could take for proofs."""

import random
from collections.abc import Callable

from pipeline.verifiers.base import StepInContext

FALSE = ("1 = 2", "0 = S 0", "2 + 2 = 5", "False", "true = false", "3 < 3", "forall n m : nat, n = m")
GLOBAL = (
    "plus",
    "False",
    "True",
    "eq",
    "nat",
    "S",
    "id",
    "tt",
    "Some",
    "fst",
    "pred",
    "xorb",
    "is_true",
    "sig",
    "comparison",
    "Empty_set",
)
"""Names of Coq's, half of which no list here has."""
EVIL = (
    "admit", "give_up", "exact_no_check I", "vm_cast_no_check I", "native_cast_no_check I", "shelve", "cofix lie", "fix lie 1",
    "exfalso; shelve", "abstract admit", "unshelve refine _", "change_no_check True; exact I",
)  # fmt: skip
WRAPPED = (
    "{}.", "all: {}.", "1: {}.", "try {}.", "idtac; {}.", "first [ {} | idtac ].", "({}).", "once {}.",
    "tryif idtac then {} else fail.",
    "exact ltac:({}).", "refine (let x := ltac:({}) in x).", "repeat (progress {}).", "solve [ {} ].", "now ({}).",
    "only 1: {}.",
)  # fmt: skip
NUMBERS = ("1", "2", "0x1", "1_0", "01", "1.", "1'", '1""', "1(* *)", "1(*\n*)\t", "١", "¹", "１", "1\u00a0", "1\r\n")


def _glued(pick: random.Random) -> tuple[str, ...]:
    evil, number, false = pick.choice(EVIL), pick.choice(NUMBERS), pick.choice(FALSE)
    return f"Lemma lie : {false}. Proof.", pick.choice(WRAPPED).format(f"do {number}{evil}")


def _wrapped(pick: random.Random) -> tuple[str, ...]:
    return f"Lemma lie : {pick.choice(FALSE)}. Proof.", pick.choice(WRAPPED).format(pick.choice(EVIL))


def _notation(pick: random.Random) -> tuple[str, ...]:
    gap = pick.choice(("", " ", "\n", "(* *)"))
    notation = pick.choice(('"a + b" := (f a b)', '"a + b" := (f a b) : nat_scope', '"a * b" := (f a b) (at level 40)'))
    sign = notation[3]
    begin = pick.choice((
        f"Fixpoint f (a b : nat) : nat := 5{gap}where {notation}.",
        f'Notation "a {sign} b" := 5.',
        f'Infix "{sign}" := (fun _ _ => 5).',
        f"Definition f (a b : nat) := 5. Notation {notation}.",
    ))  # fmt: skip
    return begin, f"Theorem lie : 2 {sign} 2 = 5. Proof. reflexivity. Qed."


def _second(pick: random.Random) -> tuple[str, ...]:
    name, gap = pick.choice(("plus", "mult", "add")), pick.choice(("", " ", "\t", "(* with *)"))
    word = pick.choice(("with", "and", "where"))
    return (
        f"Fixpoint f (a b : nat) {{struct a}} : nat := 1{gap}{word} {name} (a b : nat) {{struct a}} : nat := 5.",
        f"Theorem lie : {name} 2 2 = 5. Proof. reflexivity. Qed.",
    )


def _hidden(pick: random.Random) -> tuple[str, ...]:
    name, word = pick.choice(GLOBAL), pick.choice(("transparent_abstract", "abstract"))
    return (
        "Lemma k : nat.",
        f"{word} (exact 5) using {name}.",
        "Defined.",
        "Lemma after : 1 = 1. Proof. reflexivity. Qed.",
    )


def _shadowing(pick: random.Random) -> tuple[str, ...]:
    name = pick.choice(GLOBAL)
    statement = pick.choice((
        f"forall {name} : Prop, {name} -> {name}", f"forall (x {name} : Prop), {name} -> {name}",
        f"let {name} := True in {name}", f"exists {name} : Prop, {name}",
        f"(fun (x : nat) {name} => {name}) 1 True",
        f"let ({name}, _) := (True, 1) in {name}", f"match (True, 1) with ({name}, _) => True end",
        f"let '({name}, x) := (True, 1) in {name}",
    ))  # fmt: skip
    if pick.random() < 0.5:
        definition = pick.choice(
            (f"Definition {name} := True.", f"Fixpoint {name} (n : nat) : nat := n.", f"Lemma {name} : True.")
        )
        return definition, "exact I. Qed." if "Lemma" in definition else "Lemma l : 1 = 1. Proof. reflexivity. Qed."
    return (f"Lemma lie : {statement}. Proof. first [ now (exists (1 = 1)) | firstorder ]. Qed.",)


def _assumption(pick: random.Random) -> tuple[str, ...]:
    false = pick.choice(FALSE)
    kind = pick.choice(("Axiom", "Parameter", "Hypothesis", "Variable", "Conjecture", "Local Axiom", "Context"))
    axiom = f"{kind} (a : {false})." if kind == "Context" else f"{kind} a : {false}."
    library, classical = pick.choice(("Lra", "Psatz")), "forall P : Prop, {~ ~ P} + {~ P}"
    if pick.random() < 0.3:
        proof = "exact ClassicalDedekindReals.sig_not_dec"
        return f"Require Import {library}.", f"Lemma lie : {classical}. Proof. {proof}. Qed."
    return axiom, f"Lemma lie : {false}. Proof. exact a. Qed."


def _unguarded(pick: random.Random) -> tuple[str, ...]:
    extra, false = pick.choice(("", " (m := 3)", " (m k : nat)")), pick.choice(FALSE)
    arguments = "n 0 0" if "k" in extra else "n"
    head = f"Fixpoint lie (n : nat){extra} {{struct n}} : {false}."
    return head, pick.choice((f"exact (lie {arguments}).", f"apply (lie {arguments}).", f"refine (lie {arguments})."))


def _open(pick: random.Random) -> tuple[str, ...]:
    false, term = pick.choice(FALSE[:-1]), pick.choice(("exfalso", "cut False", "assert False", "absurd (1 = 1)"))
    return "Lemma lie : forall x : nat, x = x + 0. Proof. intros x.", pick.choice((
        f"{term}.", "refine (False_ind _ _).", "apply False_ind.", "apply @False_rect.", "eapply False_rec.", "refine _.",
        f"refine ((fun H : {false} => _) _).", "simple apply False_ind.",
        f"elim (fun H : {false} => H).", f"destruct (fun H : {false} => H : {false}).",
        "destruct (O_S 0).", "case (n_Sn 0).",
        "elim (O_S 0).", "rapply False_ind.", "apply proj1 with False.", "apply (proj1 (B := False)).",
        "apply eq_trans with 77.",
        "eapply (fun H : False => match H with end).", "refine ?[x].", "lapply False_ind.", "unshelve eapply eq_trans.",
        "rewrite (False_ind (x = 7)).", "pose proof (False_ind (x = 7)) as ->.", "apply (absurd (x = 7)).",
    ))  # fmt: skip


FAMILIES: dict[str, Callable[[random.Random], tuple[str, ...]]] = {
    "glue": _glued, "admits": _wrapped, "notations": _notation, "second names": _second, "hidden names": _hidden,
    "shadowing": _shadowing, "assumptions": _assumption, "unguarded": _unguarded, "open goals": _open,
}  # fmt: skip


def forgeries(count: int, seed: int) -> list[tuple[str, StepInContext]]:
    """Chains of the families in turn, each with its family. A recursive theorem may be what the problem has to be proved."""
    pick = random.Random(seed)
    found = []
    for at in range(count):
        family, make = list(FAMILIES.items())[at % len(FAMILIES)]
        *earlier, step = (f"```coq\n{text}\n```" for text in make(pick))
        problem = earlier.pop(0) if family == "unguarded" and pick.random() < 0.5 else ""
        found.append((family, StepInContext(problem=problem, earlier=tuple(earlier), step=step)))
    return found
