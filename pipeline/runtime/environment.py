"""The environment variables of the driver's shell that engines on other nodes need, and the secrets among them. Pure.

Ray writes a runtime environment into the logs of its nodes and shows it in its dashboard. Secrets are therefore kept out of it:
they are sent to a worker in the call that makes it, and messages of workers are printed without them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.core.split_secrets import split

PREFIXES = ("HF_", "HUGGING_FACE_", "HUGGINGFACE_HUB_", "TRANSFORMERS_", "VLLM_", "NCCL_")
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
"""In capital or small letters."""
OF_ONE_MACHINE = (
    "VLLM_RPC_BASE_PATH",
    "VLLM_CPU_OMP_THREADS_BIND",
    "VLLM_DP_RANK",
    "VLLM_DP_RANK_LOCAL",
    "VLLM_DP_SIZE",
    "VLLM_RAY_BUNDLE_INDICES",
    "VLLM_GPU_NIC_PCIE_MAPPING",
    "VLLM_OBJECT_STORAGE_SHM_BUFFER_NAME",
    "NCCL_HOSTID",
    "NCCL_COMM_ID",
    "NCCL_RAS_ADDR",
    "NCCL_TOPO_FILE",
    "NCCL_GRAPH_FILE",
)
"""Variables that are wrong on any other machine, as are all addresses and ports: sockets, cores, devices, and the place of a
process among others."""
HIDDEN = "***"
LEAST_SECRET = 6
"""Shorter values are not hidden in messages: they would blot out parts of words."""
_ADDRESS_OR_PORT = re.compile(r"_(?:IPS?|HOST|PORT)$")
_SECRET_NAME = re.compile(r"KEY|SECRET|PASSW|CREDENTIAL|AUTH")
_TOKEN_NAME = re.compile(r"TOKEN(?!S|IZ)")
_NUMBER = re.compile(r"\s*[+-]?[0-9]+(?:\.[0-9]*)?\s*")
_USER_AND_PASSWORD = re.compile(r"//[^/@\s]+@|^[^/@\s]+:[^/@\s]+@")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedVariables:
    """`plain`: for Ray's runtime environment. `secret`: never written anywhere, so not part of the representation either."""

    plain: Mapping[str, str]
    secret: Mapping[str, str] = field(repr=False)


def forwarded(environment: Mapping[str, str]) -> ForwardedVariables:
    """The variables of an environment that engines need. Anything else, such as keys of other services, stays here."""
    needed = {name: value for name, value in environment.items() if _is_needed(name)}
    secret = {name for name, value in needed.items() if is_secret(name, value)}
    return ForwardedVariables(
        plain={name: value for name, value in needed.items() if name not in secret},
        secret={name: value for name, value in needed.items() if name in secret},
    )


def is_secret(name: str, value: str) -> bool:
    """Whether a variable may hold a secret: by its name, or because its value is an address with a user or a password.

    A number of tokens is a limit. A password may be a number.
    """
    name = name.upper()
    is_token = bool(_TOKEN_NAME.search(name)) and not _NUMBER.fullmatch(value)
    return is_token or bool(_SECRET_NAME.search(name) or _USER_AND_PASSWORD.search(value))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with `HIDDEN` in place of the values of secrets, and of users and passwords within them, the longest first.

    Also where white space or characters beyond ASCII are inside of them.
    """
    hidden = {part for secret in secrets for part in _parts(secret)}
    for part in sorted(hidden, key=len, reverse=True):
        if len(part) >= LEAST_SECRET:
            text = split(part).sub(HIDDEN, text)
    return text


def _parts(secret: str) -> Iterator[str]:
    """A secret, and of an address also its user with the password, and the password."""
    yield secret
    if found := _USER_AND_PASSWORD.search(secret):
        login = found[0].removeprefix("//").removesuffix("@")
        yield login
        yield login.partition(":")[2]


def _is_needed(name: str) -> bool:
    if name.upper() in PROXIES:
        return True
    return name.startswith(PREFIXES) and name not in OF_ONE_MACHINE and not _ADDRESS_OR_PORT.search(name)
