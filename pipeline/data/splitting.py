"""Which problems are held out for validation: what a problem asks decides, not where it stands or which others there are."""

from unicodedata import normalize

from pipeline.core.ids import ID_DIGITS, content_id


def in_validation(problem: str, share: float, seed: int) -> bool:
    """Whether a problem, with all its chains, belongs to the `share` (0 to 1) of all problems that is held out.

    Texts that differ in white space, case or the encoding of accents alone go together, and a larger share holds what a smaller
    one does. Another `seed` holds out others.
    """
    asked = " ".join(normalize("NFC", problem).split()).lower()
    return int(content_id("validation", str(seed), asked), 16) < share * (1 << 4 * ID_DIGITS)
