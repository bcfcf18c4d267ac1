"""Compares two structured answers item by item. Answers of different kinds are not equal. Pure.

The result has three values. True and False are certain. None means that the result depends on items that cannot be compared.
"""

from collections.abc import Callable, Sequence
from itertools import compress, pairwise

from pipeline.graders.math import labels
from pipeline.graders.math.equations import is_to_be_solved, same_zeros, scale_sign, unknowns
from pipeline.graders.math.expression import Expression, all_of, expression
from pipeline.graders.math.forms import FLIPPED, Form, FormKind, interval_of, is_label, read_form, split_label
from pipeline.graders.math.measures import in_order_of, names_parts

Leaf = Callable[[str, str], bool | None]

MAX_PAIRS = 400
_UNORDERED = frozenset({FormKind.LIST, FormKind.SET})
_NOTHING = "\\emptyset"


def same_form(wanted: Form, given: Form, leaf: Leaf) -> bool | None:
    """Compare two forms. `leaf` compares two expressions."""
    if FormKind.RELATION in (wanted.kind, given.kind):
        return _relations(wanted, given, leaf)
    wanted, given = _unwrapped(wanted), _unwrapped(given)
    if wanted.kind.value > given.kind.value:
        wanted, given, leaf = given, wanted, _exchanged(leaf)
    kinds = {wanted.kind, given.kind}
    if kinds == {FormKind.EXPRESSION}:
        return leaf(wanted.text, given.text)
    if FormKind.UNION in kinds:
        left, right = _pieces(wanted), _pieces(given)
        return None if left is None or right is None else _ordered(left, right, leaf)
    if kinds in ({FormKind.TUPLE}, {FormKind.MATRIX}):
        # The brackets around two items distinguish intervals. Around three or more items they have no meaning.
        alike = wanted.marks == given.marks or (wanted.kind is FormKind.TUPLE and len(wanted.items) > 2)
        return alike and _ordered(wanted.items, given.items, leaf)
    if kinds == {FormKind.MATRIX, FormKind.TUPLE}:
        return _ordered(_cells(wanted, given), given.items, leaf)
    if kinds <= _UNORDERED:
        counted = kinds == {FormKind.LIST}
        return not labels.contradict(wanted, given) and _lists(wanted.items, given.items, leaf, counted=counted)
    if kinds == {FormKind.LIST, FormKind.TUPLE}:
        statements = any(item.kind is FormKind.RELATION and not split_label(item) for item in wanted.items)
        return None if statements else _values_and_tuple(wanted, given, leaf)
    if wanted.kind is not FormKind.EXPRESSION:
        return False
    if given.kind in _UNORDERED:
        # The list 5,5 is not the value 5: it may mean 5.5.
        doubled = given.text.count(wanted.text) > 1 and "," in given.text
        if doubled or (given.kind is FormKind.LIST and labels.contradict(wanted, given)):
            return False
        if given.kind is FormKind.SET and not given.items:
            return leaf(wanted.text, _NOTHING)
    if given.items and given.items[0].text == _NOTHING:
        # A set that holds the empty set is not empty.
        return False
    if given.kind in _UNORDERED and given.items:
        return _lists((wanted,), given.items, leaf)
    return None if expression(wanted.text) is None else False


def _exchanged(leaf: Leaf) -> Leaf:
    return lambda one, other: leaf(other, one)


def _cells(rows: Form, matrix: Form) -> tuple[Form, ...]:
    """The cells of [[1,2],[3,4]], or the items of a tuple that is compared with one row or column. Empty for other shapes."""
    width = int(matrix.marks[0])
    if width in (1, len(matrix.items)) and all(item.kind is not FormKind.TUPLE for item in rows.items):
        return rows.items
    square = all(row.marks == rows.marks == ("[", "]") and len(row.items) == width for row in rows.items)
    return tuple(cell for row in rows.items for cell in row.items) if square else ()


def _values_and_tuple(values: Form, pair: Form, leaf: Leaf) -> bool | None:
    """Compare a list of values with a tuple. Names put the values into their natural order: y=3, x=2 is (2,3)."""
    items: Sequence[Form] = values.items
    naming = labels.naming_of(items)
    if "or" in values.marks or naming is labels.Naming.PARTLY:
        return False
    if naming is not labels.Naming.NONE:
        names = [name for name in labels.labels_of(items) if name]
        if len(set(names)) < len(items):
            # Several values of one unknown are not a pair.
            return False
        order = labels.natural_order(names)
        if order is not None:
            return _ordered([items[position] for position in order], pair.items, leaf)
    listed = pair.marks == ("[", "]")
    return _lists(items, pair.items, leaf, counted=True) if listed else _ordered(items, pair.items, leaf)


def _unwrapped(form: Form) -> Form:
    """The only item of a list or set. A set of a set is not that set."""
    while form.kind in _UNORDERED and len(form.items) == 1 and form.items[0].text != _NOTHING:
        if form.kind is form.items[0].kind is FormKind.SET:
            return form
        form = form.items[0]
    return form


def _ordered(wanted: Sequence[Form], given: Sequence[Form], leaf: Leaf) -> bool | None:
    if len(wanted) != len(given):
        return False
    return all_of(same_form(_value(left), _value(right), leaf) for left, right in zip(wanted, given, strict=True))


def _value(form: Form) -> Form:
    pair = split_label(form)
    return _labelled(*pair) if pair else form


def _labelled(label: str, value: str) -> Form:
    """The value of a label. The value of a label with several names, as (y,x), is put into the natural order of the names."""
    form = read_form(value)
    names = label[1:-1].split(",") if label.startswith("(") and form.kind is FormKind.TUPLE else []
    order = labels.natural_order(names) if len(names) > 1 and len(names) == len(form.items) else None
    if order is None or order == sorted(order):
        return form
    return Form(form.kind, form.text, tuple(form.items[position] for position in order), form.marks)


def _lists(wanted: Sequence[Form], given: Sequence[Form], leaf: Leaf, *, counted: bool = False) -> bool | None:
    """Compare lists in any order, in which a value may occur twice. Distinct labels decide which items belong together.

    `counted`: if both lists have values that occur twice, as double roots do, they must occur equally often.
    """
    if not wanted or not given:
        return not wanted and not given
    if len(wanted) * len(given) > MAX_PAIRS:
        return None
    roots, others = ({name.partition("_")[0] for name in labels.labels_of(side) if name} for side in (wanted, given))
    if len(wanted) == len(given) == len(roots | others) and not (roots and others):
        return _ordered(wanted, given, leaf)
    table = [[_same_item(left, right, leaf) for right in given] for left in wanted]
    lines = [*table, *zip(*table, strict=True)]
    if any(all(cell is False for cell in line) for line in lines):
        return False
    if not all(True in line for line in lines):
        return None
    return not (counted and _counts_differ(table))


def _counts_differ(table: Sequence[Sequence[bool | None]]) -> bool:
    """Whether both lists repeat values, but not equally often. `table` says which items of the one are equal to which of the
    other; every item is equal to some."""
    rows, columns = ([line.count(True) for line in lines] for lines in (table, [*zip(*table, strict=True)]))
    if max(rows) == 1 or max(columns) == 1 or any(None in line for line in table):
        return False
    return any(set(compress(columns, line)) != {count} for count, line in zip(rows, table, strict=True))


def _same_item(wanted: Form, given: Form, leaf: Leaf) -> bool | None:
    """Compare two items of lists. The roots x_1 and x_2 of an equation may change places."""
    if (wanted.kind is FormKind.SET) != (given.kind is FormKind.SET):
        # {{1},2} is not {1,2}.
        return False
    left, right = split_label(wanted), split_label(given)
    if left and right and labels.are_roots(labels.plain_label(left[0]), labels.plain_label(right[0])):
        return same_form(_value(wanted), _value(given), leaf)
    return same_form(wanted, given, leaf)


def _pieces(form: Form) -> list[Form] | None:
    """The intervals and points of a union from left to right, or None if some touch or have no numeric ends."""
    parts = form.items if form.kind is FormKind.UNION else (form,)
    placed: list[tuple[float, float, Form]] = []
    for part in parts:
        inside = interval_of(part) or part
        if inside.kind is FormKind.SET:
            ends = [(item, item, item) for item in inside.items]
        elif inside.kind is FormKind.TUPLE and len(inside.items) == 2:
            ends = [(inside.items[0], inside.items[1], inside)]
        else:
            return None
        for low, high, piece in ends:
            start, end = _number(low.text), _number(high.text)
            if start is None or end is None:
                return None
            # Other intervals are empty.
            if start <= end:
                placed.append((start, end, piece))
    placed.sort(key=lambda piece: piece[:2])
    for (_, end, left), (start, _, right) in pairwise(placed):
        open_point = left.kind is right.kind is FormKind.TUPLE and left.marks[1] == ")" and right.marks[0] == "("
        if start < end or (start == end and not open_point):
            return None
    return [piece for _, _, piece in placed]


def _number(text: str) -> float | None:
    read = expression(text)
    return read.number() if read else None


def _relations(wanted: Form, given: Form, leaf: Leaf) -> bool | None:
    if wanted.kind is given.kind is FormKind.RELATION:
        return _two_relations(wanted, given, leaf)
    if FormKind.LIST in (wanted.kind, given.kind) and labels.contradict(wanted, given):
        return False
    # 4 is no answer where x+y = 4 is asked for, and 2x = 4 is none where 4 is.
    open_ = unknowns if wanted.kind is FormKind.RELATION else is_to_be_solved
    if wanted.kind is FormKind.RELATION:
        wanted, given, leaf = given, wanted, _exchanged(leaf)
    interval = interval_of(given)
    if interval:
        return same_form(wanted, interval, leaf)
    read = wanted.kind is FormKind.EXPRESSION and expression(wanted.text) is not None
    if set(given.marks) != {"="}:
        return False if read else None
    value = _equated(given, leaf)
    if value is None:
        return False if read and any(open_(item.text) for item in given.items if not is_label(item.text)) else None
    return same_form(wanted, value, leaf) if isinstance(value, Form) else value


def _equated(relation: Form, leaf: Leaf) -> Form | bool | None:
    """The value that an equation states. False if its sides contradict each other, None if it states no value."""
    sides = [item.text for item in relation.items]
    pair = split_label(relation)
    if pair and len(sides) == 2:
        return _labelled(*pair)
    values = [side for side in sides if not is_label(side)]
    if not values:
        return read_form(sides[-1])
    if len(values) < 2 or (not pair and any((read := expression(value)) is None or read.variables for value in values)):
        return None
    agreement = all_of(same_form(read_form(values[0]), read_form(value), leaf) for value in values[1:])
    return read_form(values[-1]) if agreement else agreement


def _two_relations(wanted: Form, given: Form, leaf: Leaf) -> bool | None:
    left, right = split_label(wanted), split_label(given)
    if left and right:
        label, other = labels.plain_label(left[0]), labels.plain_label(right[0])
        if label == other:
            return same_form(_labelled(*left), _labelled(*right), leaf)
        arguments = labels.renamed_arguments(label, left[1], other, right[1])
        if arguments:
            bodies = labels.renamed(left[1], arguments[0], right[1], arguments[1])
            return bodies and same_form(read_form(bodies[0]), read_form(bodies[1]), leaf)
    moved = [_moved(relation) for relation in (wanted, given) if len(relation.items) == 2]
    if len(moved) == 2 and moved[0] and moved[1]:
        if not (moved[0].variables or moved[1].variables):
            # 2+3=5 and 4+4=8 are both true, and do not say the same.
            return _same_sides(wanted, given, leaf)
        same = _same_relation(wanted.marks[0], moved[0], given.marks[0], moved[1])
        if same or not (left and right):
            return same
    if not (left and right):
        return _same_sides(wanted, given, leaf) if len(wanted.items) == len(given.items) else None
    if ":" in left[1] and (names_parts(left[0]) or names_parts(right[0])):
        ordered = in_order_of(left[0], right[0], right[1])
        return False if ordered is None else leaf(left[1], ordered)
    return False if labels.differ(label, other) else same_form(_labelled(*left), _labelled(*right), leaf)


def _same_sides(wanted: Form, given: Form, leaf: Leaf) -> bool | None:
    """Compare relations, as chains a < x < b, by their sides, read from either end."""
    straight = wanted.marks == given.marks and _ordered(wanted.items, given.items, leaf)
    flipped = tuple(FLIPPED[mark] for mark in reversed(given.marks))
    turned = wanted.marks == flipped and _ordered(wanted.items, given.items[::-1], leaf)
    return straight or turned or (None if None in (straight, turned) else False)


def _moved(relation: Form) -> Expression | None:
    """The left side minus the right side of a relation."""
    left, right = (labels.spaced_product(side.text) for side in relation.items)
    return expression(f"({left})-({right})")


def _same_relation(wanted: str, left: Expression, given: str, right: Expression) -> bool | None:
    if wanted in ("=", "\\ne") or given in ("=", "\\ne"):
        return wanted == given and same_zeros(left, right)
    sign = scale_sign(left, right)
    if not sign:
        return None if sign is None or left.variables != right.variables else False
    return wanted == (given if sign > 0 else FLIPPED[given])
