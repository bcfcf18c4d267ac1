"""Which variables of the driver's shell reach workers on other nodes, and that no secret among them is ever written."""

import importlib.util
import re
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.runtime.environment import HIDDEN, LEAST_SECRET, forwarded, is_secret, without_secrets

SHELL = {
    "HF_TOKEN": "hf_abcdefghijkl",
    "HF_HOME": "/shared/hf",
    "HF_HUB_OFFLINE": "1",
    "HUGGING_FACE_HUB_TOKEN": "hf_mnopqrstuv",
    "VLLM_ATTENTION_BACKEND": "FLASH_ATTN",
    "VLLM_API_KEY": "key-of-a-server",
    "VLLM_HOST_IP": "10.0.0.1",
    "NCCL_SOCKET_IFNAME": "eth0",
    "https_proxy": "http://proxy:3128",
    "HTTP_PROXY": "http://user:password@proxy:3128",
    "all_proxy": "user:password@proxy:3128",
    "no_proxy": "localhost",
    "AWS_SECRET_ACCESS_KEY": "of no engine",
    "OPENAI_API_KEY": "of another policy",
    "CUDA_VISIBLE_DEVICES": "0",
    "PATH": "/usr/bin",
}


def test_engines_get_what_they_need_and_nothing_else() -> None:
    found = forwarded(SHELL)
    plain = ("HF_HOME", "HF_HUB_OFFLINE", "VLLM_ATTENTION_BACKEND", "NCCL_SOCKET_IFNAME", "https_proxy", "no_proxy")
    assert found.plain == {name: SHELL[name] for name in plain}
    secrets = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "HTTP_PROXY", "all_proxy")
    assert found.secret == {name: SHELL[name] for name in secrets}


OF_ONE_MACHINE = """
    VLLM_HOST_IP VLLM_LOOPBACK_IP VLLM_PORT VLLM_DP_MASTER_IP VLLM_DP_MASTER_PORT VLLM_DP_RANK VLLM_DP_RANK_LOCAL
    VLLM_DP_SIZE VLLM_NIXL_SIDE_CHANNEL_HOST VLLM_NIXL_SIDE_CHANNEL_PORT VLLM_EC_SIDE_CHANNEL_HOST
    VLLM_P2P_SIDE_CHANNEL_PORT VLLM_MOONCAKE_BOOTSTRAP_PORT VLLM_RAY_DP_PLACEMENT_NODE_IPS VLLM_RAY_BUNDLE_INDICES
    VLLM_GPU_NIC_PCIE_MAPPING VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME NCCL_HOSTID NCCL_COMM_ID NCCL_RAS_ADDR
    NCCL_TOPO_FILE NCCL_GRAPH_FILE
"""


@pytest.mark.parametrize("name", OF_ONE_MACHINE.split())
def test_what_is_true_of_one_machine_stays_there(name: str) -> None:
    found = forwarded({name: "10.0.0.1", "VLLM_ATTENTION_BACKEND": "FLASH_ATTN"})
    assert {**found.plain, **found.secret} == {"VLLM_ATTENTION_BACKEND": "FLASH_ATTN"}


def test_no_address_or_port_of_the_installed_vllm_is_forwarded() -> None:
    vllm = importlib.util.find_spec("vllm")
    if vllm is None or vllm.origin is None:
        pytest.skip("no vLLM")
    text = (Path(vllm.origin).parent / "envs.py").read_text("utf-8")
    known = set(re.findall(r'^    "(VLLM_\w+)":', text, re.MULTILINE))
    assert len(known) > 100
    local = {name for name in known if re.search("_(IPS?|HOST|PORT|RANK|RANK_LOCAL|BIND|INDICES|BASE_PATH)$", name)}
    assert {"VLLM_HOST_IP", "VLLM_DP_RANK", "VLLM_EC_SIDE_CHANNEL_PORT"} <= local
    found = forwarded(dict.fromkeys(known, "1"))
    assert not local & {*found.plain, *found.secret}


LIMITS = ("VLLM_MAX_TOKENS_PER_EXPERT_FP4_MOE", "VLLM_MULTI_STREAM_GEMM_TOKEN_THRESHOLD")


@pytest.mark.parametrize("name", LIMITS)
def test_a_number_of_tokens_is_a_limit(name: str) -> None:
    found = forwarded({name: "163840"})
    assert found.plain == {name: "163840"}
    assert "163840 tokens" in without_secrets("max 163840 tokens", found.secret.values())


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("HF_X_TOKENS", "left", False),
        ("VLLM_TOKENIZER_MODE", "mistral", False),
        *(
            (name, "31415926", True)
            for name in ("VLLM_API_KEY", "HF_PASSWORD", "HF_SECRET", "NCCL_AUTH", "HF_CREDENTIALS")
        ),
    ],
)
def test_a_password_may_be_a_number_and_tokens_of_a_text_are_no_secret(name: str, value: str, secret: bool) -> None:
    assert is_secret(name, value) is secret


@given(
    st.sampled_from(["HF_", "VLLM_"]),
    st.sampled_from(["TOKEN", "HUB_TOKEN", "TOKEN_", "API_KEY", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH"]),
    st.sampled_from(["", "_OF_A_HUB", "_2"]),
    st.text(string.ascii_letters, min_size=1),
)
def test_what_a_name_calls_secret_is_never_plain(start: str, word: str, end: str, value: str) -> None:
    found = forwarded({start + word + end: value})
    assert found.secret == {start + word + end: value}
    assert found.plain == {}


names = st.builds(
    "{}{}".format,
    st.sampled_from(["HF_", "VLLM_", "NCCL_", "AWS_", "MY_", ""]),
    st.text(string.ascii_uppercase + "_", min_size=1, max_size=12),
)
values = st.text(string.printable, max_size=20)


@given(st.dictionaries(names, values))
def test_nothing_is_both_and_nothing_changes(shell: dict[str, str]) -> None:
    found = forwarded(shell)
    assert not set(found.plain) & set(found.secret)
    assert {**found.plain, **found.secret}.items() <= shell.items()
    assert not any(is_secret(name, value) for name, value in found.plain.items())
    assert not any(name.startswith(("AWS_", "MY_")) for name in (*found.plain, *found.secret))


@given(st.lists(st.text("abc", min_size=LEAST_SECRET, max_size=12)), st.text("abc ", max_size=60))
def test_a_text_without_secrets_holds_none(secrets: list[str], text: str) -> None:
    hidden = without_secrets(text + " ".join(secrets), secrets)
    assert not any(secret in hidden for secret in secrets)
    assert len(hidden) <= len(text + " ".join(secrets))


def test_a_secret_within_a_longer_one_leaves_nothing_of_it() -> None:
    assert without_secrets("token-and-more token-", ["token-", "token-and-more"]) == f"{HIDDEN} {HIDDEN}"
    assert without_secrets("in a line", ["in", ""]) == "in a line"


def test_a_password_is_hidden_without_its_address_too() -> None:
    proxy = "http://user:passw0rd@proxy:80"
    for text in (proxy, "cannot connect to user:passw0rd@proxy", "password passw0rd refused"):
        assert "passw0rd" not in without_secrets(text, [proxy])


def test_secrets_are_not_part_of_what_is_printed() -> None:
    assert "hf_abcdefghijkl" not in repr(forwarded(SHELL))


def test_a_secret_that_is_broken_by_what_nobody_sees_is_hidden() -> None:
    for inside in ("\u200b", "\u00ad", "\x00", "\ufe0f"):
        assert (
            without_secrets(f"bad {inside.join('hf_secret_1')}{inside}.", ["hf_secret_1"]) == f"bad {HIDDEN}{inside}."
        )
