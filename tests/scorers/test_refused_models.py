"""A model of another kind than the scorer says, and a tokenizer that its format does not work with, are refused in one line
that says what fits instead."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import AddedToken
from transformers import Gemma2Config, Gemma2ForCausalLM

from pipeline.__main__ import main
from pipeline.config.score import ScorerConfig
from pipeline.core.errors import UsageError
from pipeline.scorers.settings import (
    FoverConfig,
    MathShepherdConfig,
    OwnConfig,
    QwenConfig,
    RlhflowConfig,
    SkyworkConfig,
)
from tests.conftest import write_rows
from tests.scorers.loaded import chain, encoded, scored
from tests.scorers.published import (
    CHATML,
    LLAMA3,
    PROBLEM,
    STEPS,
    add_weights,
    llama_prm,
    llama_tokenizer,
    mistral_prm,
    mistral_tokenizer,
    qwen_prm,
    qwen_tokenizer,
    skywork_prm,
    skywork_tokenizer,
)

pytestmark = pytest.mark.slow

Make = Callable[[Path], Path]
OTHERS: list[tuple[type[Any], Make, str]] = [
    (QwenConfig, skywork_prm, "is Qwen2ForPrmModel, but scorer=qwen is for .*: scorer=skywork reads such models"),
    (
        SkyworkConfig,
        qwen_prm,
        "is Qwen2ForProcessRewardModel, but scorer=skywork is for .*: scorer=qwen reads such models",
    ),
    (
        RlhflowConfig,
        qwen_prm,
        "is Qwen2ForProcessRewardModel, but scorer=rlhflow is for .*: scorer=qwen reads such models",
    ),
    (OwnConfig, qwen_prm, "but scorer=own is for .*: scorer=qwen reads such models"),
    (QwenConfig, llama_prm, "scorer=math_shepherd or scorer=rlhflow or scorer=fover reads such models"),
    (MathShepherdConfig, skywork_prm, "but scorer=math_shepherd is for a causal language model .*: scorer=skywork"),
]


@pytest.mark.parametrize(("settings", "make", "message"), OTHERS)
def test_another_architecture_is_refused_with_the_scorer_that_fits(
    settings: type[Any], make: Make, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        scored(settings(model=str(make(tmp_path / "prm"))), [chain(0, PROBLEM, *STEPS)])


def test_an_architecture_that_no_scorer_reads_is_refused(tmp_path: Path) -> None:
    folder = change(qwen_prm(tmp_path / "prm"), architectures=["Qwen2ForRewardModel"])
    with pytest.raises(UsageError, match=r"is Qwen2ForRewardModel, but .*: choose another scorer or model"):
        scored(QwenConfig(model=str(folder)), [chain(0, PROBLEM, *STEPS)])


@pytest.mark.parametrize(
    ("settings", "make", "drop", "missing"),
    [
        (QwenConfig, qwen_prm, "score.2", "score.2.weight, score.2.bias,"),
        (QwenConfig, qwen_prm, "model.layers.1", r"layers.1.input_layernorm.weight, .* and \d+ more"),
        (SkyworkConfig, skywork_prm, "v_head", "v_head.summary.weight, v_head.summary.bias,"),
        (RlhflowConfig, llama_prm, "lm_head", "lm_head.weight,"),
    ],
)
def test_weights_that_the_files_lack_are_not_made_up(
    settings: type[Any], make: Make, drop: str, missing: str, tmp_path: Path
) -> None:
    folder = make(tmp_path / "prm")
    add_weights(folder, {}, drop=drop)
    with pytest.raises(UsageError, match=f"lacks the weights {missing}"):
        scored(settings(model=str(folder)), [chain(0, PROBLEM, *STEPS)])


def test_a_head_of_another_shape_is_refused(tmp_path: Path) -> None:
    folder = qwen_prm(tmp_path / "prm")
    add_weights(folder, {"score.2.weight": torch.zeros(3, 64)}, drop="score.2.weight")
    with pytest.raises(UsageError, match=r"has score.2.weight of shape \(3, 64\), and scorer=qwen reads \(2, 64\)"):
        scored(QwenConfig(model=str(folder)), [chain(0, PROBLEM, *STEPS)])


def test_a_model_that_caps_its_logits_is_refused(tmp_path: Path) -> None:
    tokenizer = llama_tokenizer()
    config = Gemma2Config(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2,
        num_key_value_heads=1, head_dim=16, final_logit_softcapping=0.5, initializer_range=1.0,
    )  # fmt: skip
    torch.manual_seed(3)
    Gemma2ForCausalLM(config).save_pretrained(tmp_path / "prm")
    tokenizer.save_pretrained(tmp_path / "prm")
    with pytest.raises(UsageError, match="changes its logits after its last layer"):
        scored(RlhflowConfig(model=str(tmp_path / "prm")), [chain(0, PROBLEM, *STEPS)])


def test_a_model_without_safetensors_is_refused(tmp_path: Path) -> None:
    for settings, make in ((QwenConfig, qwen_prm), (SkyworkConfig, skywork_prm), (FoverConfig, llama_prm)):
        folder = make(tmp_path / settings.__name__)
        weights = load_file(folder / "model.safetensors")
        (folder / "model.safetensors").unlink()
        torch.save(weights, folder / "pytorch_model.bin")
        with pytest.raises(UsageError, match=r"cannot be loaded: .*in safetensors"):
            scored(settings(model=str(folder)), [chain(0, PROBLEM, *STEPS)])


def merging(tokenizer: Any) -> Any:
    """The tokenizer with an added token that takes the tag and the text before it."""
    tokenizer.add_tokens([AddedToken(". ки\n", normalized=False)])
    return tokenizer


def spaced(template: str) -> str:
    """A template whose tag for the end of a turn is a text like any other."""
    return template.replace("<|eot_id|>", "#")


TOKENIZERS: list[tuple[ScorerConfig, Callable[[], Any], str]] = [
    (QwenConfig(model="m"), lambda: qwen_tokenizer(tag=None), "scorer.tag='<extra_0>' is not one token .* but [2-9]"),
    (QwenConfig(model="m", tag="."), qwen_tokenizer, r"scorer.tag='\.' is an ordinary token .*, which merges with"),
    (QwenConfig(model="m"), lambda: qwen_tokenizer(template=None), "the tokenizer of m has no chat template"),
    (
        QwenConfig(model="m", system="<|im_end|>"),
        qwen_tokenizer,
        "a text of the settings .* holds '<|im_end|>', a special",
    ),
    (
        QwenConfig(model="m"),
        lambda: qwen_tokenizer(template="{{ raise_exception('System role not supported') }}"),
        "refuses a chat with the roles system, user, assistant: System role not supported: take the tokenizer",
    ),
    (
        QwenConfig(model="m"),
        lambda: qwen_tokenizer(template="{{ messages[0].role }}{{ messages[1].content }}{{ messages[2].content }}"),
        "does not write every message once and in order",
    ),
    (QwenConfig(model="m"), lambda: qwen_tokenizer(template=CHATML + "{{ 1 / 0 }}"), "refuses a chat"),
    (MathShepherdConfig(model="m", tag=" §§"), mistral_tokenizer, "scorer.tag=' §§' is not one token"),
    (MathShepherdConfig(model="m"), lambda: mistral_tokenizer(words=["▁+"]), ""),
    (MathShepherdConfig(model="m", good="yes please"), mistral_tokenizer, "scorer.good='yes please' is not one token"),
    (
        MathShepherdConfig(model="m"),
        lambda: merging(mistral_tokenizer()),
        "merges the tag ' ки' with the text beside it",
    ),
    (RlhflowConfig(model="m"), lambda: llama_tokenizer(template=None), "the tokenizer of m has no chat template"),
    (RlhflowConfig(model="m"), mistral_tokenizer, "the tokenizer of m has no chat template"),
    (RlhflowConfig(model="m", bad="wrong!"), llama_tokenizer, "scorer.bad='wrong!' is not one token"),
    (FoverConfig(model="m", bad="correct."), llama_tokenizer, "begin with the same token"),
    (
        FoverConfig(model="m", good="\nyes"),
        llama_tokenizer,
        "the tokenizer of m merges the answers with the text beside it: in a sample chain it makes 'y'",
    ),
    (SkyworkConfig(model="m"), lambda: skywork_tokenizer(bos=None), "has no bos_token, with which every chain"),
    (SkyworkConfig(model="m", step_token="\n§"), skywork_tokenizer, "scorer.step_token='\\\\n§' is not one token"),
]


@pytest.mark.parametrize(("settings", "tokenizer", "message"), TOKENIZERS)
def test_a_tokenizer_that_the_format_does_not_work_with_is_refused(
    settings: ScorerConfig, tokenizer: Callable[[], Any], message: str
) -> None:
    if not message:
        assert encoded(settings, tokenizer(), PROBLEM, STEPS).ends
        return
    with pytest.raises(UsageError, match=message) as caught:
        encoded(settings, tokenizer(), PROBLEM, STEPS)
    assert "\n" not in str(caught.value)


def test_a_template_without_special_tokens_is_read_where_it_answers() -> None:
    tokenizer = llama_tokenizer(template=spaced(LLAMA3).replace("<|end_header_id|>", ":"))
    found = encoded(RlhflowConfig(model="m"), tokenizer, PROBLEM, STEPS)
    assert [tokenizer.decode([found.ids[end + 1]]) for end in found.ends] == ["+"] * 3


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        ("qwen", "scorer.tag=''"),
        ("math_shepherd", "scorer.between=''"),
        ("rlhflow", "scorer.bad=+"),
        ("rlhflow", "scorer.good=''"),
        ("fover", "scorer.first_turn='{problem} and {problem} {step}'"),
        ("fover", "scorer.first_turn='{step} {problem}'"),
        ("skywork", "scorer.step_token=''"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    name: str, setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[dict[str, object]] = [{"problem": PROBLEM, "answer": "12", "steps": list(STEPS)}]
    data = f"data.path={write_rows(tmp_path / 'rows.jsonl', rows)}"
    out = f"out={tmp_path / 'scores.jsonl'}"
    words = ["score", f"scorer={name}", "scorer.model=m", data, out, setting]
    assert main(words) == UsageError.exit_code
    key = setting.partition("=")[0]
    assert f"{key}=" in capsys.readouterr().err


def change(folder: Path, **changes: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return folder


def test_a_causal_model_of_another_type_can_be_read(tmp_path: Path) -> None:
    """Formats go with any type of model that transformers has: Math-Shepherd's with Llama's."""
    folder = llama_prm(tmp_path / "prm", mistral_tokenizer())
    (one,) = scored(MathShepherdConfig(model=str(folder)), [chain(0, PROBLEM, *STEPS)])
    (other,) = scored(MathShepherdConfig(model=str(mistral_prm(tmp_path / "other"))), [chain(0, PROBLEM, *STEPS)])
    assert one.positions == other.positions
    assert one.scores != other.scores
