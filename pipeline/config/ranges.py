"""How a setting that is out of range is told."""


def check(condition: bool, key: str, value: object, wanted: str) -> None:
    """Raise ValueError unless `condition` holds, naming the key, its value and what it must be."""
    if not condition:
        raise ValueError(f"{key}={value} is out of range: it must be {wanted}")
