"""Sentences of Coq, what they do, chains of them, and what Coq says: all without Coq."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.verifiers.base import StepInContext
from pipeline.verifiers.coq.commands import STANDARD, Command, Effect, bound_names, command, is_tactic
from pipeline.verifiers.coq.lexer import Sentence, sentences
from pipeline.verifiers.coq.replies import Reply, Said, end_of, reply
from pipeline.verifiers.coq.script import coq_part, script_of
from pipeline.verifiers.coq.session import AXIOM, FALSE_GOAL, GIVE, GOALS, UNSHELVE, Ended, Goals, Outcome, Session
from pipeline.verifiers.reading import NotRead

PROOF = """(* A proof, (* nested *) with "a string *) in a comment". *)
Theorem t : forall n, n + 0 = n. (* . *)
Proof. intros n.
  induction n as [|n IH].
  - reflexivity.
  -- simpl. { rewrite IH. reflexivity. }
  2: { exact (Nat.add_0_r n). }
Qed."""


def texts(script: str) -> list[str]:
    return [each.text for each in sentences(script)]


def test_sentences() -> None:
    assert texts(PROOF) == [
        "Theorem t : forall n, n + 0 = n.",
        *("Proof.", "intros n.", "induction n as [|n IH].", "-", "reflexivity.", "--", "simpl.", "{", "rewrite IH."),
        *("reflexivity.", "}", "2: {", "exact (Nat.add_0_r n).", "}", "Qed."),
    ]
    assert texts("") == texts("(* only this *)") == []
    assert texts('Notation "a . b" := (a\n+ b).') == ['Notation "a . b" := (a + b).']
    assert texts("exact 1.5. exact (r.(f)).") == ["exact 1.5.", "exact (r.(f))."]
    assert sentences("apply Nat.le_trans.")[0].words == {"apply", "Nat", "le_trans"}


@pytest.mark.parametrize(
    "script",
    [
        "auto.-intros.", "auto.}", "auto.(* *)auto.", "auto.(*x", "auto", "auto. (* open", 'idtac "open.', "x.. y.", "auto...",
        *(f"do {number}idtac." for number in ("1", "0x1", "1_0", "1.5", "1'", "1.", "١", "¹", "１")), "pose (a² := 1).",
        "exact \u039f.",
        "pose x.1.", 'idtac "two\nlines".', "idtac\x0b.", "idtac\u2028.", "idtac\u00a0.", "a\x00.", "a\u200b.", "{ auto",
        "x " * 20_000 + ".",
        "auto. " * 2_001,
    ],
)  # fmt: skip
def test_sentences_whose_end_is_not_sure_are_not_read(script: str) -> None:
    with pytest.raises(NotRead):
        sentences(script)


words = st.text(alphabet=string.ascii_letters + "_'", min_size=1, max_size=8).filter(
    lambda word: not word.startswith("'")
)
symbols = st.sampled_from(
    ["(", ")", "=", ":", ":=", "|", "[", "]", ",", ";", "->", "12", "1.5", "A.b", '"a. b"', "∀", "λ"]
)
pieces = st.lists(words | symbols, min_size=1, max_size=8).map(" ".join).map(lambda text: f"x {text}.")
alone = st.sampled_from(["{", "}", "-", "++", "***"])
blanks = st.sampled_from([" ", "\n", "\t\r\n", " (* a. b *) ", "(* (* . *) *)\n", ' (* "*)" *) '])


@given(st.lists(st.tuples(pieces | alone, blanks), max_size=12))
def test_what_is_written_is_read(written: list[tuple[str, str]]) -> None:
    """Sentences with white space and comments between them are read one by one, and so is what they are read as."""
    script = "".join(
        text + (" " if text[-1] in "-+*" else "\n" if text[-1] == "." else "") + blank for text, blank in written
    )
    found = texts(script)
    assert found == [text for text, _ in written]
    assert texts("\n".join(found)) == found


@given(st.text(alphabet=st.sampled_from("ab. \n(*)\"{}-+:=>1'_∀é"), max_size=60))
def test_whatever_is_read_has_one_end(script: str) -> None:
    try:
        found = sentences(script)
    except NotRead:
        return
    for each in found:
        assert ("\n" not in each.text and "(*" not in each.text.replace('"', "").replace("((", "(")) or '"' in each.text
        if each.text.endswith("."):
            assert not any(token in (".", "..") for token in each.tokens)
        assert texts(each.text) == [each.text]


@given(st.text(max_size=80))
def test_any_text_is_read_or_not(script: str) -> None:
    for given_too in (True, False):
        try:
            for each in sentences(script):
                assert isinstance(command(each, given=given_too), Command)
        except NotRead:
            pass


def read(text: str, *, given: bool = False) -> Command:
    (sentence,) = sentences(text)
    return command(sentence, given=given)


EFFECTS = {
    "Lemma a : 1 = 1.": Effect.STATEMENT,
    "Definition a : nat.": Effect.STATEMENT,
    "Definition a := 1.": Effect.DEFINITION,
    "Fixpoint f (n : nat) := match n with O => O | S m => f m end.": Effect.DEFINITION,
    "Proof.": Effect.PROOF,
    "Proof using.": Effect.PROOF,
    "Proof (eq_refl 1).": Effect.END,
    "Qed.": Effect.END,
    "Defined.": Effect.END,
    "Check 1.": Effect.QUESTION,
    "intros n.": Effect.TACTIC,
    "2-3: lia.": Effect.TACTIC,
    "(split; lia).": Effect.TACTIC,
    "[> lia | lia ].": Effect.TACTIC,
    "-": Effect.FOCUS,
    "1: {": Effect.FOCUS,
    "Require Import Lia.": Effect.CONTEXT,
    "From Coq Require Import Lia Psatz.": Effect.CONTEXT,
}


@pytest.mark.parametrize("text", EFFECTS)
def test_effects(text: str) -> None:
    found = read(text)
    assert (found.effect, found.refusal) == (EFFECTS[text], "")


def test_names_that_a_step_declares_or_binds_in_terms_must_be_new() -> None:
    for text, names in {
        "Definition f plus (x y : nat * nat) := x.": {"f", "plus", "x", "y"},
        "Lemma a : forall '(p, q) : nat * nat, exists r : nat, p = r.": {"a", "p", "q", "r"},
        "assert (H : 1 = 1).": {"H"},
        "all: destruct l as [|hd tl].": set(),
        "Goal n = 1.": set(),
    }.items():
        assert set(read(text).names) == names, text
        assert read(text, given=True).names == ()
    assert read(f"exact {'(fun x => ' * 300}1{')' * 300}.").refusal


def test_what_a_problem_may_say_and_a_step_may_not() -> None:
    for text in (
        "Axiom a : False.", "Open Scope Z_scope.", 'Notation "a == b" := (a = b).', "Admitted.", "Require Import Reals.",
        "Inductive t := A | B.", "Set Implicit Arguments.", "Ltac f := lia.", "From Coq Require Import ZArith.",
        "Variable x : nat.", "Lemma a : True with b : True.", "Import ListNotations.", "Local Open Scope nat_scope.",
    ):  # fmt: skip
        assert not read(text, given=True).refusal, text
        assert read(text).refusal, text


def test_what_nobody_may_say() -> None:
    for text in (
        'Redirect "f" Check 1.', 'Extraction "f" plus.', 'Load "f".', 'Print Universes "f".', "Drop.", 'Cd "f".',
        "Time lia.", 'Declare ML Module "f".', "Unset Guard Checking.", "native_compute.", "exact_no_check I.",
        "Require Import lies.", "From Lies Require Import Lia.", "Require Import Coq.Numbers.Cyclic.Int63.Uint63.",
        "Fail lia.", "timeout 1 lia.", "Require.", "Require Import Coq.Floats.Floats.",
        "Require Import Coq.extraction.Extraction.", "Quit.", "#[a] Lemma b : 1.",
    ):  # fmt: skip
        assert read(text, given=True).refusal, text
        assert read(text).refusal, text


def test_bound_standard_names() -> None:
    def bound(text: str) -> frozenset[str]:
        return STANDARD.intersection(bound_names(sentences(text)[0].tokens))

    for text in (
        "pose (False := True).", "Lemma a : forall nat : Type, nat.", "intros nat.", "destruct H as [True | n].",
        "set (le := lt).", "exact (fun False => False).", "Lemma a : forall (n le : nat), 1 = 1.", "intros [a False].",
        "let True := 1 in idtac.", "exact (fun (n : list (nat * nat)) plus => plus).",
    ):  # fmt: skip
        assert bound(text), text
    for text in (
        "Lemma a : forall n : nat, S n = 1.", "exists (S n).", "exact (fun n => S n).", "apply (le_n 3).", "intros n m H.",
        "Lemma a : exists n : nat, n = O.", "pose (f := S n).", "remember (S n) as m.", "all: auto.", "destruct n as [|n'].",
    ):  # fmt: skip
        assert not bound(text), text


def test_words_are_no_script() -> None:
    for text in (
        "We apply the lemma.", "First, add 3 to both sides.", "x = 3.", "", " ", "So auto is right. Then lia.",
    ):  # fmt: skip
        assert coq_part(text) is None, text
    for text in ("Proof. auto.", "- auto.", "lia.", "Lemma a : 1 = 1.", "2: lia.", "}"):
        assert coq_part(text) is not None, text
    with pytest.raises(NotRead):
        coq_part("```coq\nauto.")
    assert not is_tactic(("2",))
    assert script_of(StepInContext(problem="Show it.", earlier=(), step="exists.")) is None


def test_a_script_knows_whose_its_sentences_are() -> None:
    script = script_of(
        StepInContext(
            problem="Show:\n```coq\nLemma a : 1 = 1.\n```",
            earlier=("Proof.", "words"),
            step="```coq\nauto.\nCheck 1.\n```",
        )
    )
    assert script is not None
    assert [each.sentence.text for each in script.before] == ["Lemma a : 1 = 1.", "Proof."]
    assert script.whose == ("the problem", "step 1")
    assert [each.sentence.text for each in script.own] == ["auto."]
    assert (script.has_words, script.words_before, script.is_fenced) == (True, True, True)
    with pytest.raises(NotRead, match="step 2 is not in Coq"):
        script_of(StepInContext(problem="Lemma a : 1 = 1.", earlier=("Proof.", "words"), step="auto."))


ACCEPTED = """
<prompt>t < 3 |t| 0 < </prompt>Toplevel input, characters 6-9:
> Check n_1.
>       ^^^
Error: The reference n_1 was not found in the current environment.

<prompt>t < 3 |t| 0 < </prompt>"""
REJECTED = """Toplevel input, characters 6-9:
> apply foo.
>       ^^^
Error: The reference foo was not found in the current environment.

<prompt>t < 2 |t| 0 < </prompt>Toplevel input, characters 6-9:
> Check n_1.
>       ^^^
Error: The reference n_1 was not found in the current environment.

<prompt>t < 2 |t| 0 < </prompt>"""
"""As Coq 8.16.1 writes them."""


def test_replies() -> None:
    assert reply(ACCEPTED, "n_1", before=2) == Reply(said=Said.ACCEPTED, state=3, proof="t", text="\n\n")
    assert reply(REJECTED, "n_1", before=2) == Reply(
        said=Said.REJECTED, state=2, proof="t", error="The reference foo was not found in the current environment."
    )
    assert reply(ACCEPTED, "n_2", before=2) is None
    assert end_of("n_1").search(ACCEPTED.encode())
    assert not end_of("n_2").search(ACCEPTED.encode())
    closed = ACCEPTED.replace("t < 3 |t|", "Coq < 3 ||")
    assert reply(closed, "n_1", before=2) == Reply(said=Said.ACCEPTED, state=3, text="\n\n")


def test_a_prompt_that_a_script_makes_up_does_not_count() -> None:
    lie = REJECTED.replace("The reference foo was not found", "Tactic failure: <prompt>t < 99 |t| 0 < </prompt>")
    found = reply(lie, "n_1", before=2)
    assert found is not None
    assert (found.said, found.state) == (Said.REJECTED, 2)
    assert not end_of("n_1").search(lie.encode()[: lie.index("99 |t| 0 < </prompt>") + 20])


@pytest.mark.parametrize(
    "said",
    [
        "Anomaly: x",
        "Out of memory",
        "Stack overflow.",
        "Timeout!",
        "User interrupt.",
        "Cannot find a physical path bound",
    ],
)
def test_what_is_no_verdict_of_coq(said: str) -> None:
    found = reply(
        REJECTED.replace("The reference foo was not found in the current environment.", said), "n_1", before=2
    )
    assert found is not None
    assert found.said is Said.FAILED


def test_errors_do_not_depend_on_what_was_asked_before() -> None:
    said = [REJECTED.replace("The reference foo was not found", f"Universe Top.{number} in t.1") for number in (3, 45)]
    first, second = (reply(each, "n_1", before=2) for each in said)
    assert first == second


class Recorded:
    """A toplevel that accepts all but one sentence, and notes what it is asked. `ends`: a sentence at which it ends."""

    def __init__(self, rejects: str = "bad.", ends: str = "end.") -> None:
        self.state = 1
        self.asked: list[str] = []
        self.open = True
        self._rejects, self._ends = rejects, ends

    def ask(self, sentence: str, seconds: float) -> Reply:
        self.asked.append(sentence)
        if sentence == self._ends:
            raise Ended("it has ended")
        if sentence == GOALS:
            return Reply(said=Said.REJECTED, state=self.state, error="Tactic failure: goals 2.")
        if sentence == self._rejects:
            return Reply(said=Said.REJECTED, state=self.state, error="no")
        self.state += 1
        text = "Constant A.old\n" if sentence == "Locate old." else "No object of basename new\n"
        return Reply(said=Said.ACCEPTED, state=self.state, text=text)

    def back_to(self, state: int, seconds: float) -> bool:
        self.state = state
        return True

    def close(self) -> None:
        self.open = False


def plain(*names: str, name: str = "") -> list[Command]:
    return [
        Command(
            sentence=Sentence(text=f"{each}.", tokens=(each,)),
            effect=Effect.TACTIC,
            given=each != "def",
            names=(name,) if each == "def" else (),
        )
        for each in names
    ]


def test_a_session_runs_a_common_beginning_once() -> None:
    made: list[Recorded] = []

    def start() -> Recorded:
        made.append(Recorded())
        return made[-1]

    session = Session(start, 1.0)
    assert [each.outcome for each in session.run(plain("a", "b", "bad", "c"))] == [Outcome.ACCEPTED] * 2 + [
        Outcome.REJECTED
    ]
    assert len(session.run(plain("a", "b", "bad", "d"))) == 3
    assert [each.state for each in session.run(plain("a", "b", "d"))] == [2, 3, 4]
    assert session.goals(2, introduced=False) == Goals(focused=2, shelved=0, is_false=False, can_end=True)
    assert made[0].asked == ["a.", "b.", "bad.", "d.", GOALS, UNSHELVE, GOALS, FALSE_GOAL, AXIOM, GIVE, "Qed."]
    assert session.run(plain("a", "end"))[-1].outcome is Outcome.FAILED
    # A used toplevel may have been at fault, so a new one was asked, too.
    assert [each.asked for each in made[1:]] == [["a.", "end."]]
    assert not made[1].open
    assert not made[0].open
    assert session.goals(2, introduced=False) is None
    session.close()


def test_a_name_that_is_there_is_not_given_another_meaning() -> None:
    session = Session(Recorded, 1.0)
    assert session.run(plain("def", name="old"))[-1].outcome is Outcome.SHADOWS
    assert session.run(plain("def", name="new"))[-1].outcome is Outcome.ACCEPTED
