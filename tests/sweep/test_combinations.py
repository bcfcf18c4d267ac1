"""Which runs a command line with `--multirun` names, and the names of their folders."""

from itertools import product

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from pipeline.cli.multirun import LETTERS, MOST_NAME, MOST_RUNS, combinations, folder_name
from pipeline.config.words import quote
from pipeline.core.errors import UsageError

KEYS = st.sampled_from(["estimator.threshold", "sampling.temperature", "policy.model", "a.b"])
TEXTS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60)


@given(st.dictionaries(KEYS, st.lists(TEXTS.filter(bool), min_size=1, max_size=4, unique=True), min_size=1))
def test_every_combination_once_in_order_with_a_name_of_its_own(chosen: dict[str, list[str]]) -> None:
    words = ["data=sample", *(f"{key}=choice({','.join(map(quote, values))})" for key, values in chosen.items())]
    found = combinations(words)
    every = [dict(zip(chosen, values, strict=True)) for values in product(*chosen.values())]
    assert list(found) == [folder_name(values) for values in every]
    parse = OverridesParser.create().parse_override
    for made, values in zip(found.values(), every, strict=True):
        first, *others = made
        assert first == "data=sample"
        assert {each.key_or_group: each.value() for each in map(parse, others)} == values


@given(st.dictionaries(KEYS, TEXTS, min_size=1))
def test_a_name_is_one_safe_part_of_a_path(values: dict[str, str]) -> None:
    name = folder_name(values)
    assert len(name.encode()) <= MOST_NAME
    assert not set("/\\ \n\t'\"*?[]{}$~:").intersection(name.rpartition("~")[0] or name)
    assert not name.startswith((".", "-"))
    assert folder_name(dict(values)) == name


@given(st.dictionaries(KEYS, TEXTS, min_size=1, max_size=2), st.dictionaries(KEYS, TEXTS, min_size=1, max_size=2))
def test_other_values_have_another_name(a: dict[str, str], b: dict[str, str]) -> None:
    assert (folder_name(a) == folder_name(b)) == (list(a.items()) == list(b.items()))


@given(st.dictionaries(KEYS, st.from_regex(rf"[{LETTERS}]{{1,20}}", fullmatch=True), min_size=1, max_size=2))
def test_plain_values_stand_in_the_name_as_they_are(values: dict[str, str]) -> None:
    assert folder_name(values) == ",".join(f"{key}={value}" for key, value in values.items())


def test_what_only_looks_alike_has_other_names() -> None:
    assert folder_name({"policy.model": "Qwen/Q"}) != folder_name({"policy.model": "Qwen-Q"})
    assert folder_name({"a": "1,b=2"}) != folder_name({"a": "1", "b": "2"})


@pytest.mark.parametrize(
    ("word", "values"),
    [
        ("a=1,2", ["1", "2"]),
        ("a=choice(x,y)", ["x", "y"]),
        ("a=range(1,4)", ["1", "2", "3"]),
        ("a='x,y',z", ["x,y", "z"]),
        ("a=[1,2],[3]", ["[1,2]", "[3]"]),
        ("a=null,0.50", ["null", "0.5"]),
        ("+experiment=a,b", ["a", "b"]),
    ],
)
def test_hydra_says_what_several_values_are(word: str, values: list[str]) -> None:
    key = word.partition("=")[0].removeprefix("+")
    assert list(combinations([word])) == [folder_name({key: value}) for value in values]


@pytest.mark.parametrize("word", ["a='x,y'", "a=[1,2]", "policy.prompt.template=P {problem}, S", 'a="q, r"'])
def test_a_text_in_quotes_a_list_and_what_hydra_cannot_read_are_one_value(word: str) -> None:
    assert combinations([word, "b=1,2"]) == {"b=1": (word, "b=1"), "b=2": (word, "b=2")}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a=1", "b=2"], "no setting has several: separate them with commas"),
        (["a=1,2,1"], "a=1 is in the sweep twice"),
        (["a=1,1.0,'1'"], "a=1 is in the sweep twice"),
        (["a=1,2", "a=3"], "a is given twice"),
        (["run_dir=a,b"], "run_dir is the same for all runs of a sweep"),
        (["budget=a,b"], "budget is the same for all runs"),
        (["cluster.address=a,b"], "cluster.address is the same for all runs"),
        (["a=interval(0,1)"], "names no single values"),
        (["a=glob(*)"], "names no single values"),
        ([f"a=range(0,{10**12})"], f"at most {MOST_RUNS} runs"),
        ([f"a=range(0,{MOST_RUNS})", "b=1,2"], f"at most {MOST_RUNS} runs, and this one has {2 * MOST_RUNS}"),
    ],
)
def test_no_sweep_and_the_remedy(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said.replace("(", r"\(")):
        combinations(words)
