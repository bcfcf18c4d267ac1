"""Steps that are written to stall or crash whoever reads them."""

LONG = 20_000
"""Characters: as many as a step may have."""


def _filled(piece: str, before: str = "", after: str = " = 7") -> str:
    length = LONG - len(before) - len(after)
    return before + piece * (length // len(piece)) + after


HOSTILE = {
    "a long number": _filled("9", "1 + "),
    "a long decimal": _filled("3", "1 + 0."),
    "a tower": "9**9**9 = 3 and 9^9^9 = 3 and 9^{9^{9^9}} = 3",
    "a large power": "9^999999999 = 3, 2^{-99999} = 1, (9^99)^99 = 5, (1/9)^99999 = 0",
    "a large factorial": "99999! = 3 and 30!^30 = 1 and (((9!)!)!)! = 4",
    "nested brackets": _filled("(", after="1" + ")" * 50 + " = 7"),
    "nested brackets that close": "(" * 9_000 + "1 + 1" + ")" * 9_000 + " = 7",
    "nested fractions": _filled("\\frac{1}{", after="2} = 7"),
    "nested roots": _filled("\\sqrt{"),
    "nested texts": _filled("\\text{"),
    "a long sum": _filled("1 + ", after="1 = 7"),
    "a long product": _filled("99999 * ", after="1 = 7"),
    "products of sums": _filled("(1+2)(3+4)", after=" = 7"),
    "many equations": _filled("1 + 1 = 2 ", after=""),
    "many false equations": _filled("1 + 1 = 3? ", after=""),
    "a chain": _filled("1 + 1 = ", after="2"),
    "a chain of nothing": _filled("="),
    "many numbers": _filled("7 "),
    "many numbers in words": _filled("7 eggs "),
    "many words": _filled("word "),
    "one word": _filled("w"),
    "dashes": _filled("-"),
    "signs": _filled("- ", "5 ", "3 = 7"),
    "stars": _filled("*"),
    "dots": _filled("."),
    "commas": _filled("1,", after="1 = 7"),
    "dollars": _filled("$"),
    "percents": _filled("5% of ", after="5 = 7"),
    "halves": _filled("half of ", after="5 = 7"),
    "marks": _filled("<<1+1=3>>", "if not ", ""),
    "half of marks": _filled("<<"),
    "backslashes": _filled("\\"),
    "lines": _filled("\n", "5 + 5"),
    "bars": _filled("|"),
    "blanks": _filled(" ", "5 + 5"),
    "units": _filled("5 miles per hour per ", after="hour = 7"),
    "compounds": _filled("5 hours and ", after="5 minutes = 7 minutes"),
    "no text": "\x00\ud800\u202e = \uffff + 1 = 2",
    "digits of others": "٣ + ٤ = ٨ and ³ + ² = 4 and ① + ② = 4",
    "code": "__import__('os').system('touch canary') = 1 and exec('1') = 2 and 1 + 1 = 2",
    "a large polynomial": "(x+y+z+w+1)^{24}(a+b+c)^{24} = 1 and (x+1)^{9999} = x, so x = 3",
    "unknowns": _filled("x + ", after="x = 7, so x = 3"),
    "unknowns and powers": _filled("x^9 + ", after="x = 7, so x = 3"),
    "a large solution": "x = 2y, 3x^{12} = 5, so x = " + "9" * 100,
    "many solutions": _filled("2x = 4, so x = 3 not. ", after=""),
    "many identities": _filled("(x+1)^2 = x^2 + 2x + 1. ", after=""),
    "division by zero": "1/0 = 5 and \\frac{1}{0} = 5 and 0^{-1} = 5 and 5 / (3 - 3) = 1 and 5 * 0 = 1/0",
}
