"""Settings of the verifiers. This module loads no library."""

from dataclasses import dataclass
from typing import Annotated

from pipeline.config.fields import BY_GROUP
from pipeline.config.verify import VerifierConfig


@dataclass(kw_only=True, slots=True)
class ArithmeticConfig(VerifierConfig):
    """Equations of plain numbers."""

    kind: Annotated[str, BY_GROUP] = "arithmetic"


@dataclass(kw_only=True, slots=True)
class AlgebraConfig(VerifierConfig):
    """Identities and solved equations."""

    kind: Annotated[str, BY_GROUP] = "algebra"
