"""Whether the Hugging Face Hub answers: asked once, with a short limit.

huggingface_hub tries each of its many requests six times, which takes a minute and more where there is no network.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from pipeline.preflight.findings import Finding, ok, warning

HUB_SECONDS = 5.0


def hub_finding() -> Finding:
    """Whether this machine reaches the Hub, or its mirror (HF_ENDPOINT)."""
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    host = urlsplit(constants.ENDPOINT).hostname or constants.ENDPOINT
    if constants.is_offline_mode():
        return ok("Hub", "HF_HUB_OFFLINE is set: models come from the caches")
    try:
        get_session().head(constants.ENDPOINT, timeout=HUB_SECONDS)
    except Exception as error:  # noqa: BLE001  names, proxies, certificates and time-outs have an error type each
        return warning(
            "Hub",
            f"{host} cannot be reached ({type(error).__name__}): only models that lie in the cache can be loaded",
            "check the network, HTTPS_PROXY and HF_ENDPOINT; set HF_HUB_OFFLINE=1 where the cache has the model",
        )
    return ok("Hub", f"{host} answers")


@contextmanager
def without_hub() -> Iterator[None]:
    """Load models from the cache alone while the block runs."""
    from huggingface_hub import constants

    # The library reads HF_HUB_OFFLINE when it is imported, and its own functions look at this constant.
    before, constants.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE, True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
