"""How a list names its values: not at all, as values of one unknown, or by a name each. Pure.

"x = 2 or x = 3" and "x = 2, 3" are two values of one unknown. "x = 2, y = 3" are values of two, and "x = 2 or y = 3" are two
statements of which one holds.
"""

from collections.abc import Sequence
from enum import Enum, auto

from pipeline.graders.math.forms import Form, FormKind, split_label
from pipeline.graders.math.labels import differ, plain_label


class Naming(Enum):
    """How the values of a list are named. STATEMENTS: not all items are values, as x < 3 and x + y = 5."""

    NONE = auto()
    ONE = auto()
    EACH = auto()
    PARTLY = auto()
    STATEMENTS = auto()


def labels_of(items: Sequence[Form]) -> list[str | None]:
    """The plain label of each item, or None where it has none."""
    return [plain_label(found[0]) if (found := split_label(item)) else None for item in items]


def naming_of(items: Sequence[Form]) -> Naming:
    """How items are named. x_1 = 2, x_2 = 3 are values of one unknown."""
    labels = labels_of(items)
    if any(label is None and item.kind is FormKind.RELATION for label, item in zip(labels, items, strict=True)):
        return Naming.STATEMENTS
    roots = [label.partition("_")[0] for label in labels if label]
    if not roots:
        return Naming.NONE
    if len(set(roots)) == 1 and len(roots) in (1, len(items)) and labels[0]:
        return Naming.ONE
    return Naming.EACH if len(set(roots)) == len(items) else Naming.PARTLY


def are_alternatives(form: Form) -> bool:
    """Whether only one of the values of a list holds: "2 or 3"."""
    return form.kind is FormKind.LIST and "or" in form.marks


def contradict(wanted: Form, given: Form) -> bool:
    """Whether two lists, sets or single values certainly differ because of the names of their values."""
    if any(label and label.startswith("(") for form in (wanted, given) for label in labels_of(_items(form))):
        # (x,y) = (2,3) names a pair.
        return False
    names = naming_of(_items(wanted)), naming_of(_items(given))
    if names == (Naming.STATEMENTS, Naming.STATEMENTS) and _functions(wanted) != _functions(given):
        # A condition for x says nothing of f(t).
        return True
    if Naming.STATEMENTS in names or names == (Naming.NONE, Naming.NONE):
        return False
    if Naming.EACH in names and are_alternatives(wanted) != are_alternatives(given):
        return True
    if names[0] is names[1]:
        return names[0] is Naming.ONE and _other_unknown(wanted, given)
    if Naming.PARTLY in names:
        return True
    if Naming.EACH not in names:
        return False
    # Values of several unknowns are no set, and no values of one unknown.
    return Naming.ONE in names or FormKind.SET in (wanted.kind, given.kind)


def _items(form: Form) -> Sequence[Form]:
    return form.items if form.kind in (FormKind.LIST, FormKind.SET) else (form,)


def _functions(form: Form) -> set[str]:
    return {label for label in labels_of(_items(form)) if label and label.endswith(")")}


def _other_unknown(wanted: Form, given: Form) -> bool:
    return any(
        differ(one, two)
        for one in labels_of(_items(wanted))[:1]
        for two in labels_of(_items(given))[:1]
        if one and two and one != two and "_" not in one + two
    )
