"""Functions with right and wrong bodies, and calls whose results tell most of them apart. Written for this purpose."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class Task:
    """A function to write. `wrong`: bodies with a mistake. `calls`: arguments, as they are written in tests."""

    head: str
    does: str
    right: str
    wrong: tuple[str, ...]
    calls: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.head.partition("(")[0]

    def source(self, body: str) -> str:
        """The function with a body."""
        lines = "\n".join(f"    {line}" for line in body.split("\n"))
        return f"def {self.head}:\n{lines}"

    @cached_property
    def values(self) -> tuple[Any, ...]:
        """The right results of the calls."""
        return tuple(self.results(self.right))

    def results(self, body: str) -> list[Any]:
        """The results of the calls with a body. The text of an exception where there is one."""
        names: dict[str, Any] = {}
        exec(self.source(body), names)
        found: list[Any] = []
        for call in self.calls:
            try:
                found.append(eval(f"{self.name}({call})", names))  # noqa: S307  texts of this file
            except Exception as error:  # noqa: BLE001  a wrong body may raise anything
                found.append(f"{type(error).__name__}!")
        return found

    def passes(self, body: str, calls: Sequence[str]) -> bool:
        """Whether a body gives the right results for these calls."""
        known = dict(zip(self.calls, self.values, strict=True))
        given = dict(zip(self.calls, self.results(body), strict=True))
        return all(type(given[call]) is type(known[call]) and given[call] == known[call] for call in calls)


TASKS: tuple[Task, ...] = (
    Task(
        "square(x)",
        "the square of a number",
        "return x * x",
        ("return x + x", "return x ** 3", "return x * 2 + 1"),
        ("3", "-4", "0", "10", "7"),
    ),
    Task(
        "clamp(x, low, high)",
        "the number nearest to x from low to high",
        "return max(low, min(x, high))",
        ("return min(low, max(x, high))", "return max(low, x)", "return min(x, high)"),
        ("5, 0, 3", "-2, 0, 3", "2, 0, 3", "9, 4, 9", "3, 4, 9"),
    ),
    Task(
        "count_vowels(text)",
        "how many vowels a text has",
        "return sum(c in 'aeiou' for c in text.lower())",
        (
            "return sum(c in 'aeiou' for c in text)",
            "return sum(c in 'aei' for c in text.lower())",
            "return len(set(c for c in text.lower() if c in 'aeiou'))",
        ),
        ("'Audio'", "'banana'", "'xyz'", "'EEL'", "'oo'"),
    ),
    Task(
        "reverse_words(text)",
        "the words of a text in reverse order",
        "return ' '.join(reversed(text.split()))",
        ("return text[::-1]", "return ' '.join(text.split())", "return ''.join(reversed(text.split()))"),
        ("'a b c'", "'hello world'", "'one'", "'x yy'", "'to be or'"),
    ),
    Task(
        "fib(n)",
        "the n-th Fibonacci number, from fib(0) = 0",
        "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn a",
        (
            "a, b = 0, 1\nfor _ in range(n):\n    a, b = b, a + b\nreturn b",
            "a, b = 1, 1\nfor _ in range(n - 1):\n    a, b = b, a + b\nreturn a",
            "if n < 2:\n    return 1\nreturn fib(n - 1) + fib(n - 2)",
        ),
        ("0", "1", "7", "10", "12"),
    ),
    Task(
        "is_prime(n)",
        "whether n is a prime",
        "return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))",
        (
            "return n > 1 and all(n % d for d in range(2, int(n ** 0.5)))",
            "return all(n % d for d in range(2, int(n ** 0.5) + 1))",
            "return n > 1 and n % 2 == 1",
        ),
        ("1", "2", "9", "17", "25", "49"),
    ),
    Task(
        "gcd(a, b)",
        "the greatest common divisor",
        "while b:\n    a, b = b, a % b\nreturn a",
        (
            "while b:\n    a, b = b, a // b\nreturn a",
            "return min(a, b)",
            "while a != b and a and b:\n    a, b = b, a % b\nreturn b",
        ),
        ("12, 18", "7, 5", "10, 5", "100, 75", "8, 9"),
    ),
    Task(
        "unique(items)",
        "the items in their order, each once",
        "return list(dict.fromkeys(items))",
        ("return sorted(set(items))", "return items", "return [x for x in items if items.count(x) == 1]"),
        ("[3, 1, 3, 2]", "[5, 5, 4]", "['b', 'a', 'b']", "[9, 8]", "[2, 2, 2, 1]"),
    ),
    Task(
        "flatten(rows)",
        "the items of all rows",
        "return [x for row in rows for x in row]",
        ("return [row[0] for row in rows if row]", "return rows", "return [x for row in rows for x in reversed(row)]"),
        ("[[1, 2], [3]]", "[[4], [], [5, 6]]", "[[7, 8, 9]]", "[['a'], ['b']]", "[[0, 1]]"),
    ),
    Task(
        "median(values)",
        "the median of an odd number of values",
        "return sorted(values)[len(values) // 2]",
        (
            "return values[len(values) // 2]",
            "return sorted(values)[len(values) // 2 - 1]",
            "return sum(values) // len(values)",
        ),
        ("[3, 1, 2]", "[9, 1, 8, 2, 3]", "[5]", "[4, 100, 6]", "[7, 7, 1]"),
    ),
    Task(
        "caesar(text, shift)",
        "each small letter moved by shift places",
        "return ''.join(chr((ord(c) - 97 + shift) % 26 + 97) for c in text)",
        (
            "return ''.join(chr(ord(c) + shift) for c in text)",
            "return ''.join(chr((ord(c) - 97 - shift) % 26 + 97) for c in text)",
            "return text[shift:] + text[:shift]",
        ),
        ("'abc', 1", "'xyz', 3", "'hello', 13", "'az', 2", "'dog', 5"),
    ),
    Task(
        "digits(n)",
        "the sum of the digits",
        "return sum(int(c) for c in str(abs(n)))",
        ("return sum(int(c) for c in str(n))", "return len(str(abs(n)))", "return abs(n) % 10"),
        ("123", "-45", "999", "1000", "70"),
    ),
    Task(
        "transpose(rows)",
        "the columns of a table",
        "return [list(column) for column in zip(*rows)]",
        (
            "return [list(row) for row in rows]",
            "return list(zip(*rows))",
            "return [list(column) for column in zip(*rows)][::-1]",
        ),
        ("[[1, 2], [3, 4]]", "[[1, 2, 3]]", "[[5], [6]]", "[[1, 2], [3, 4], [5, 6]]", "[['a', 'b'], ['c', 'd']]"),
    ),
    Task(
        "run_lengths(text)",
        "pairs of a letter and how often it comes in a row",
        "found = []\nfor c in text:\n    if found and found[-1][0] == c:\n"
        "        found[-1] = (c, found[-1][1] + 1)\n    else:\n        found.append((c, 1))\nreturn found",
        (
            "return [(c, text.count(c)) for c in dict.fromkeys(text)]",
            "found = []\nfor c in text:\n    found.append((c, 1))\nreturn found",
            "found = []\nfor c in text:\n    if found and found[-1][0] == c:\n"
            "        found[-1] = (c, found[-1][1] + 2)\n    else:\n        found.append((c, 1))\nreturn found",
        ),
        ("'aab'", "'abab'", "'zzz'", "'q'", "'aabbba'"),
    ),
    Task(
        "binary(n)",
        "the binary digits of n",
        "return bin(n)[2:]",
        ("return bin(n)", "return bin(n)[2:][::-1]", "return hex(n)[2:]"),
        ("5", "8", "12", "1", "19"),
    ),
    Task(
        "second(values)",
        "the second largest of different values",
        "return sorted(set(values))[-2]",
        ("return sorted(values)[-2]", "return sorted(set(values))[1]", "return max(values)"),
        ("[1, 5, 3]", "[9, 9, 4]", "[2, 8, 8, 7, 6]", "[10, 20, 30, 5]", "[4, 4, 3, 2]"),
    ),
)
"""No value of a call is like another in all of them, so that no constant passes."""

NAMED: dict[str, Task] = {task.name: task for task in TASKS}
