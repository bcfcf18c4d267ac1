"""Which of the verifiers of `checks` the section `verifier` is about."""

from collections.abc import Mapping

from pipeline.cli.options import named_implementation
from pipeline.core.errors import UsageError


def implied_verifier(written: Mapping[str, str]) -> dict[str, str]:
    """The verifier that written settings are about, as an option of the group `verifier`: the only one that `checks` names.

    Raises UsageError where it is none of them, and where they are several."""
    from pipeline.verifiers.registry import VERIFIERS

    names = [name.strip("'\" ") for name in written.get("checks", "").strip("[] ").split(",") if name.strip("'\" ")]
    if written.get("checks") in (None, "null") or not names:
        return {}
    own = [key for key in written if key.startswith("verifier.")]
    named = named_implementation("verifier", written)
    if named is not None and named not in names:
        raise UsageError(
            f"verifier={named} is none of checks=[{','.join(names)}]: name it there too, or leave verifier out"
        )
    if own and named is None and len(names) > 1:
        raise UsageError(f"{own[0]}: this is a setting of one verifier: say of which one, such as verifier={names[0]}")
    return {"verifier": names[0]} if named is None and names[0] in VERIFIERS.names() else {}
