"""Which variables of the driver's shell reach workers on other nodes, and that no secret among them is ever written."""

import string

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
    assert found.plain == {
        name: SHELL[name]
        for name in (
            "HF_HOME",
            "HF_HUB_OFFLINE",
            "VLLM_ATTENTION_BACKEND",
            "NCCL_SOCKET_IFNAME",
            "https_proxy",
            "no_proxy",
        )
    }
    secrets = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "VLLM_API_KEY", "HTTP_PROXY", "all_proxy")
    assert found.secret == {name: SHELL[name] for name in secrets}


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
