"""The verifiers by name: built-in ones and those of installed plug-ins. To add a built-in one, add a line to `VERIFIERS`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.config.recorded_settings import complete_settings
from pipeline.config.verify import VerifierConfig
from pipeline.core.errors import UsageError
from pipeline.core.registry import Registry
from pipeline.core.suggestions import choice_hint

if TYPE_CHECKING:
    from pipeline.verifiers.base import Verifier

VERIFIERS: "Registry[type[Verifier]]" = Registry(
    "verifiers",
    noun="verifier",
    setting="verifier.kind",
    ours={
        "arithmetic": "pipeline.verifiers.arithmetic.verifier:Arithmetic pipeline.verifiers.settings:ArithmeticConfig",
        "algebra": "pipeline.verifiers.algebra.verifier:Algebra pipeline.verifiers.settings:AlgebraConfig",
        "z3": "pipeline.verifiers.z3.verifier:Z3 pipeline.verifiers.settings:Z3Config",
        "code": "pipeline.verifiers.code.verifier:Code pipeline.verifiers.settings:CodeConfig",
        "coq": "pipeline.verifiers.coq.verifier:Coq pipeline.verifiers.settings:CoqConfig",
        "proof_server": (
            "pipeline.verifiers.proof_server.verifier:ProofServer pipeline.verifiers.settings:ProofServerConfig"
        ),
        "facts": "pipeline.verifiers.facts.verifier:Facts pipeline.verifiers.settings:FactsConfig",
    },
    needs=("Config", "verify"),
    answers="pipeline.verifiers.base:ANSWERS",
)


def verifier_for(settings: VerifierConfig) -> "Verifier":
    """The verifier that the settings name. Raises UsageError where no verifier of that name is installed.

    A wrong finding of a plug-in raises PluginError, which names it, as does what the plug-in raises."""
    made: Verifier = VERIFIERS.create(settings.kind, complete_settings(settings, VERIFIERS))
    return made


def verifier_named(name: str) -> "Verifier":
    """The verifier of this name with its default settings. Raises as `verifier_for` does."""
    config = VERIFIERS.settings(name)
    made: Verifier = VERIFIERS.create(name, config(kind=name))
    return made


def named_verifiers(names: Sequence[str], given: VerifierConfig) -> list[VerifierConfig]:
    """The settings of the verifiers `names`: those `given` for the one that they name, and the default ones of the others.

    Raises UsageError for a verifier that is not installed, and ValueError for settings that it does not accept."""
    known = VERIFIERS.names()
    for name in names:
        if name not in known:
            raise UsageError(
                f"checks=[{name}]: there is no such verifier here: {choice_hint(name, known)} (or install the plug-in that "
                "provides it)"
            )
    return [
        complete_settings(given if name == given.kind else VERIFIERS.settings(name)(kind=name), VERIFIERS)
        for name in names
    ]


def inputs_of(settings: VerifierConfig) -> Mapping[str, str]:
    """`Verifier.inputs` of the verifier that the settings name. A plug-in may lack it."""
    return dict(_stated(settings, "inputs") or {})


def proves(settings: VerifierConfig) -> bool:
    """`Verifier.proves` of the verifier that the settings name. A plug-in may lack it."""
    return bool(getattr(VERIFIERS.load(settings.kind), "proves", False))


def warnings_of(settings: VerifierConfig) -> Sequence[str]:
    """`Verifier.warnings` of the verifier that the settings name. A plug-in may lack it."""
    return list(_stated(settings, "warnings") or ())


def missing_for(settings: VerifierConfig) -> str:
    """`Verifier.missing` of the verifier that the settings name. A plug-in may lack it."""
    return str(_stated(settings, "missing") or "")


def _stated(settings: VerifierConfig, name: str) -> Any:
    found = getattr(VERIFIERS.load(settings.kind), name, None)
    return found and found(complete_settings(settings, VERIFIERS))
