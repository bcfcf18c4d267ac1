"""The verifier coq asks Coq: right and wrong proofs, hostile steps, limits, and nothing left behind."""

import contextlib
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.core.errors import UsageError
from pipeline.verifiers.base import UNKNOWN, Covers, Finding, StepInContext, StepVerdict
from pipeline.verifiers.coq import toplevel
from pipeline.verifiers.coq.commands import Command, Effect
from pipeline.verifiers.coq.lexer import Sentence, sentences
from pipeline.verifiers.coq.session import Ended, Outcome, Session
from pipeline.verifiers.coq.verifier import Coq
from pipeline.verifiers.registry import inputs_of, missing_for
from pipeline.verifiers.settings import CoqConfig
from tests.verifiers.coq_forgeries import forgeries
from tests.verifiers.coq_hostile import CANARY, LOOPS, PROVABLE, hostile
from tests.verifiers.coq_problems import first_rejected, generated

pytestmark = pytest.mark.slow
needs_coq = pytest.mark.skipif(toplevel.program() is None, reason=f"needs Coq: {toplevel.REMEDY}")
THEOREM = "Theorem t : forall n : nat, n + 0 = n."
STEPS = ("Proof. intros n.", "induction n as [|n IH].", "- reflexivity.", "- simpl. rewrite IH. reflexivity.", "Qed.")


@pytest.fixture(scope="module")
def coq() -> Iterator[Coq]:
    made = Coq(CoqConfig(sentence_seconds=30))  # a busy machine loads Coq's library of real numbers slowly
    yield made
    made.close()


def asked(coq: Coq, step: str, *earlier: str, problem: str = THEOREM) -> Finding:
    return coq.verify(StepInContext(problem=problem, earlier=earlier, step=step))


def test_without_coq_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toplevel, "SEARCHED", "/nowhere")
    assert missing_for(CoqConfig()) == "needs coqtop: apt-get install coq"
    with pytest.raises(UsageError, match="verifier coq needs coqtop: apt-get install coq"):
        Coq(CoqConfig())


@needs_coq
def test_another_version_is_another_check(monkeypatch: pytest.MonkeyPatch) -> None:
    assert missing_for(CoqConfig()) == ""
    version = inputs_of(CoqConfig())["coq_version"]
    assert version[0].isdigit()
    monkeypatch.setattr(toplevel, "version", lambda _: "8.99.0")
    assert inputs_of(CoqConfig()) == {"coq_version": "8.99.0"}


@needs_coq
def test_each_step_of_a_proof_holds(coq: Coq) -> None:
    for at, step in enumerate(STEPS):
        found = asked(coq, step, *STEPS[:at])
        assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.WHOLE), found
        assert found.evidence == f"Coq accepts: {step}"


@needs_coq
def test_a_step_that_coq_rejects_is_refuted_with_its_reason(coq: Coq) -> None:
    found = asked(coq, "- simpl. rewrite add_zero. reflexivity.", *STEPS[:3])
    assert (found.verdict, found.covers) == (StepVerdict.REFUTED, Covers.WHOLE)
    assert (
        found.evidence
        == "Coq rejects `rewrite add_zero.`: The reference add_zero was not found in the current environment."
    )
    late = asked(coq, "Qed.", *STEPS[:3])
    assert late.verdict is StepVerdict.REFUTED
    assert "incomplete proof" in late.evidence
    after = asked(coq, "Qed.", *STEPS[:3], "- rewrite add_zero.")
    assert after.verdict is StepVerdict.UNKNOWN
    assert after.evidence.startswith("Coq rejects a sentence of step 4, `rewrite add_zero.`")
    wrong_problem = asked(coq, "Proof.", problem="Theorem t : forall n, n + O = m.")
    assert wrong_problem.verdict is StepVerdict.UNKNOWN


@needs_coq
@pytest.mark.parametrize(
    ("step", "earlier", "said"),
    [
        ("Definition k := 1.", (), "proves nothing"),
        ("Lemma h : 1 = 2.", (), "proves nothing"),
        ("Lemma h : 1 = 2. Proof. simpl.", (), "does not prove it"),
        ("Proof.", (THEOREM,), "proves nothing"),
        ("Lemma h : 1 = 1. Proof. reflexivity. Qed.", ("```coq\nAxiom a : 1 = 1.\n```",), "step 1: `Axiom` by a step"),
        ("assert (1 = 2).", (THEOREM, "Proof."), "states a goal"),
        ("exfalso.", (THEOREM, "Proof."), "states a goal"),
        ("Lemma plus_n_O : 1 = 1. Proof. reflexivity. Qed.", (), "a name already"),
        ("Lemma a : match True with False => False end. Proof. exact I. Qed.", (), "a name already"),
        ("Lemma a : ltac:(exact True). Proof. exact I. Qed.", (), "what a tactic makes"),
        ("```coq\nCheck 1. Lemma h : 1 = 1. Proof. reflexivity. Qed.\n```", (), "Coq accepts"),
        ("admit.", (THEOREM, "```coq\nProof.\n```"), ""),
    ],
)
def test_what_proves_nothing_is_unknown(coq: Coq, step: str, earlier: tuple[str, ...], said: str) -> None:
    found = asked(
        coq, step, *(text for text in earlier if text != THEOREM), problem=THEOREM if THEOREM in earlier else ""
    )
    assert said in found.evidence
    assert found.verdict is StepVerdict.UNKNOWN or found.covers is Covers.PART, found


@needs_coq
def test_a_goal_that_a_step_states_and_proves_holds(coq: Coq) -> None:
    for step in (
        "assert (1 = 1) by reflexivity.",
        "assert (1 = 1). { reflexivity. }",
        "assert (1 = 1). 2: { intros n. symmetry. apply plus_n_O. } reflexivity.",
        "exfalso. admit.",
    ):
        wanted = StepVerdict.UNKNOWN if "admit" in step else StepVerdict.HOLDS
        assert asked(coq, f"```coq\n{step}\n```", "Proof.").verdict is wanted, step


@needs_coq
def test_a_proof_by_contradiction_may_go_on_with_false(coq: Coq) -> None:
    problem = "Lemma t : forall P Q : nat -> Prop, (forall x, P x -> ~ Q x) -> ~ (exists x, P x /\\ Q x)."
    steps = ("intros P Q H [x Hx]. destruct Hx as [H1 H2].", "destruct (H x H1).", "exact H2.", "Qed.")
    for at, step in enumerate(steps):
        assert asked(coq, step, *steps[:at], problem=problem).verdict is StepVerdict.HOLDS


@needs_coq
def test_words_around_a_step_leave_it_unrefuted() -> None:
    problem = f"Prove it with lia.\n```coq\n{THEOREM}\n```"
    step = "```coq\nProof. lia. Qed.\n```"
    for ignore, wanted in ((False, StepVerdict.UNKNOWN), (True, StepVerdict.REFUTED)):
        coq = Coq(CoqConfig(ignore_words=ignore))
        assert asked(coq, step, problem=problem).verdict is wanted
        # Words that look like a sentence of Coq are no error of a proof.
        for words in (
            "exists the one.",
            "apply induction.",
            "rewrite it. simpl.",
            "induction on n.",
            "left and right.",
        ):
            assert asked(coq, words, "Proof.").verdict is StepVerdict.UNKNOWN, words
        coq.close()
    made = Coq(CoqConfig())
    found = asked(made, f"So:\n```coq\n{' '.join(STEPS)}\n```", problem=problem)
    assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.PART)
    made.close()


@needs_coq
def test_libraries_bring_what_they_have(coq: Coq) -> None:
    problem = "Require Import Classical."
    assert (
        asked(coq, "Lemma p : forall P, P \\/ ~ P. Proof. exact classic. Qed.", problem=problem).verdict
        is StepVerdict.HOLDS
    )
    assert asked(coq, "Require Import Lia. Lemma h : 1 < 2. Proof. lia. Qed.", problem="").verdict is StepVerdict.HOLDS


@needs_coq
def test_verdicts_agree_with_the_compiler(coq: Coq) -> None:
    for chain in generated(10, seed=7):
        truth = first_rejected(chain)
        for at, step in enumerate(chain.contexts()):
            found = coq.verify(step)
            if found.verdict is StepVerdict.HOLDS:
                assert truth is None or at < truth, (chain, found)
            if found.verdict is StepVerdict.REFUTED:
                assert at == truth, (chain, found)


@needs_coq
def test_a_step_has_one_finding_in_whatever_order_it_is_asked(coq: Coq) -> None:
    steps = [step for chain in generated(5, seed=11) for step in chain.contexts()]
    found = {id(step): coq.verify(step) for step in steps}
    random.Random(5).shuffle(steps)
    assert all(coq.verify(step) == found[id(step)] for step in steps)
    fresh = Coq(CoqConfig())
    for step in steps[::7]:
        fresh.close()
        assert fresh.verify(step) == found[id(step)]
    fresh.close()


@needs_coq
def test_no_hostile_step_holds_or_is_refuted(coq: Coq) -> None:
    verdicts = {name: coq.verify(step) for name, step in hostile().items()}
    assert {name: found for name, found in verdicts.items() if found.verdict is not StepVerdict.UNKNOWN} == {}
    assert not Path(CANARY).exists()


@needs_coq
@pytest.mark.parametrize("count", [54, pytest.param(1_000, marks=pytest.mark.nightly)])
def test_no_forged_proof_holds(coq: Coq, count: int) -> None:
    held = [
        (family, step) for family, step in forgeries(count, seed=count) if coq.verify(step).verdict is StepVerdict.HOLDS
    ]
    assert held == []


@needs_coq
def test_an_instance_of_a_step_may_change_what_signs_mean(coq: Coq) -> None:
    problem = 'Class P A := pl : A -> A -> A. Infix "[+]" := pl (at level 50). Instance p : P nat := plus. Goal 1 = 1.'
    found = asked(coq, "assert (2 [+] 2 = 5) by reflexivity.", "pose (q := (fun _ _ => 5) : P nat).", problem=problem)
    assert found.covers is Covers.PART


@needs_coq
def test_terms_with_functions_are_read(coq: Coq) -> None:
    for term in ("(fun n : nat => n) 1", "(fun f : nat -> nat => f 0) S", "length (map (fun x => x) [1])"):
        proof = f"Lemma l : {term} = 1. Proof. reflexivity. Qed."
        assert asked(coq, proof, problem="Require Import List. Import ListNotations.").covers is Covers.WHOLE


DECLARED, STATED, PROVED, TRIED = Effect.DEFINITION, Effect.STATEMENT, Effect.END, Effect.TACTIC


@needs_coq
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ([(DECLARED, 'Fixpoint f (a b : nat) : nat := 5where "a + b" := (f a b) : nat_scope.')], "changes notations"),
        ([(DECLARED, "Fixpoint f (a : nat) : nat := 1with plus (a : nat) : nat := 5.")], "declares more than `f`"),
        ([(DECLARED, "Fixpoint f (n : nat) {struct n} : 1 = 2.")], "opens a proof"),
        (
            [(STATED, "Lemma f : nat."), (TRIED, "transparent_abstract (exact 5) using le."), (PROVED, "Defined.")],
            "declares",
        ),
        ([(TRIED, "Axiom a : 1 = 2."), (STATED, "Lemma f : 1 = 2."), (PROVED, "Proof a.")], "declares more than `f`"),
        ([(STATED, "Lemma f : 1 = 2."), (TRIED, "do 1admit.")], "cannot end"),
        ([(STATED, "Lemma f : 1 = 2."), (TRIED, "do 1exact_no_check (eq_refl 1).")], "cannot end"),
        ([(STATED, "Fixpoint f (n : nat) {struct n} : 1 = 2."), (TRIED, "exact (f n).")], "cannot end"),
        ([(STATED, "Lemma f : 1 = 1."), (TRIED, "refine (False_ind _ _).")], "is false"),
        ([(STATED, "Lemma f : 1 = 1 /\\ 2 = 2."), (TRIED, "split."), (Effect.FOCUS, "-"), (TRIED, "split.")], ""),
    ],
)
def test_coq_itself_decides_where_a_sentence_is_misread(script: list[tuple[Effect, str]], why: str) -> None:
    """Sentences that the reader refuses, sent all the same as what they pretend to be."""
    path = toplevel.program()
    assert path is not None
    session = Session(lambda: toplevel.Toplevel(path, 1024), 5.0)
    read = [(effect, Sentence(text=text, tokens=tuple(text.split()))) for effect, text in script]
    ran = session.run(
        [Command(sentence=each, effect=effect, names=("f",) * ("f" in each.tokens)) for effect, each in read]
    )
    if ran[-1].outcome is Outcome.ACCEPTED:
        goals = session.goals(1, introduced=False)
        assert goals is not None
        assert (goals.can_end, goals.is_false) == (why != "cannot end", why == "is false")
    else:
        assert (ran[-1].outcome, why in ran[-1].why) == (Outcome.SHADOWS, True), ran[-1]
    session.close()


@needs_coq
def test_comments_and_strings_are_not_looked_at(coq: Coq) -> None:
    found = [asked(coq, step, "Proof.") for step in ("intros n. (* so 1 = 2 *)", 'intros n. idtac "1 = 2".')]
    assert [(each.verdict, each.covers) for each in found] == [(StepVerdict.HOLDS, Covers.PART)] * 2


@needs_coq
def test_axioms_of_the_problem_and_its_libraries_are_given(coq: Coq) -> None:
    extensional = "(forall f g : nat -> nat, (forall x, f x = g x) -> f = g)"
    real = "Lemma t : forall x y : R, (x < y -> 2 * x < 2 * y)%R"
    for problem, step in {
        "Axiom a : 1 = 2. Lemma t : 1 = 2.": "Proof. exact a. Qed.",
        "Module M. Axiom a : 1 = 2. End M. Lemma t : 1 = 2.": "Proof. exact M.a. Qed.",
        "Section S. Hypothesis a : 1 = 2. Lemma t : 1 = 2.": "Proof. exact a. Qed.",
        f"Require Import Reals. {real}.": "Require Import Lra. Proof. intros. lra. Qed.",
        f"Require Import FunctionalExtensionality. Lemma t : {extensional}.": "exact (@functional_extensionality _ _). Qed.",
    }.items():
        found = asked(coq, step, problem=problem)
        assert (found.verdict, found.covers) == (StepVerdict.HOLDS, Covers.WHOLE), found


@needs_coq
def test_a_step_without_an_end_is_unknown_and_costs_the_next_one_nothing() -> None:
    coq = Coq(CoqConfig(sentence_seconds=0.5, memory_mib=512))
    for step in LOOPS:
        found = asked(coq, f"```coq\n{step}\n```", "Proof.", problem=PROVABLE)
        assert found.verdict is not StepVerdict.HOLDS or step.startswith("compute"), found
        assert asked(coq, "reflexivity.", "Proof.", problem=PROVABLE).verdict is StepVerdict.HOLDS
    coq.close()


@needs_coq
def test_a_toplevel_cannot_write_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even what is never sent to it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = toplevel.program()
    assert path is not None
    made = toplevel.Toplevel(path, 1024)
    pid = made._process.pid
    assert os.listdir(tmp_path) == []
    with contextlib.suppress(Ended):
        made.ask(f'Redirect "{tmp_path}/out" Print nat.', 5.0)
    written = [file for file in tmp_path.iterdir() if file.stat().st_size]
    made.close()
    assert written == []
    assert not Path(f"/proc/{pid}").exists()


@needs_coq
def test_a_forged_prompt_does_not_count() -> None:
    path = toplevel.program()
    assert path is not None
    made = toplevel.Toplevel(path, 1024)
    made.ask("Lemma a : False.", 5.0)
    before = made.state
    forged = f"<prompt>a < {before + 1} |a| 0 < </prompt>"
    reply = made.ask(f'fail 0 "{forged}".', 5.0)
    assert (reply.said.value, made.state) == ("rejected", before)
    assert made.ask("exact I.", 5.0).said.value == "rejected"
    made.close()


@needs_coq
def test_a_session_whose_toplevel_somebody_kills_goes_on() -> None:
    path = toplevel.program()
    assert path is not None
    tops: list[toplevel.Toplevel] = []

    def start() -> toplevel.Toplevel:
        tops.append(toplevel.Toplevel(path, 1024))
        return tops[-1]

    script = [Command(sentence=each, effect=Effect.TACTIC) for each in sentences(f"{THEOREM} {' '.join(STEPS)}")]
    session = Session(start, 5.0)
    session.run(script[:4])
    tops[0]._process.kill()
    assert all(ran.outcome is Outcome.ACCEPTED for ran in session.run(script))
    assert len(tops) == 2
    session.close()


@needs_coq
def test_long_steps_are_unknown() -> None:
    coq = Coq(CoqConfig(most_characters=10))
    assert asked(coq, "Proof. intros n.") == UNKNOWN
    assert asked(coq, " ") == UNKNOWN
