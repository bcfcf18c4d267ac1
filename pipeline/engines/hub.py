"""Whether the Hugging Face Hub answers: asked once, with a short limit.

huggingface_hub tries each of its many requests six times, which takes a minute and more where there is no network.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

HUB_SECONDS = 5.0


def hub_name() -> str:
    """The host of the Hub, or of its mirror (HF_ENDPOINT)."""
    from huggingface_hub import constants

    return str(urlsplit(constants.ENDPOINT).hostname or constants.ENDPOINT)


def hub_is_off() -> bool:
    """Whether the user has turned it off (HF_HUB_OFFLINE)."""
    from huggingface_hub import constants

    return bool(constants.is_offline_mode())


@contextmanager
def hub_asked_once() -> Iterator[str]:
    """Yield why the Hub cannot be reached from here, or an empty text. While the block runs, models come from the cache alone
    where it cannot."""
    from huggingface_hub import constants

    reason = "" if hub_is_off() else _unreachable()
    # The library reads HF_HUB_OFFLINE when it is imported, and its own functions look at this constant.
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE or bool(reason)
    try:
        yield reason
    finally:
        constants.HF_HUB_OFFLINE = before


def _unreachable() -> str:
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
    except Exception as error:  # noqa: BLE001  names, proxies, certificates and time-outs have an error type each
        return type(error).__name__
    return ""
