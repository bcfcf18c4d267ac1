"""Makes one program of the blocks of an answer, in the confined process that runs it. Pure, and runs nothing.

Called programs: the last block that defines more than tests is the program. The blocks before it run first, statement by
statement, and what fails there is left out; of those after it, only imports and constants count.
Scripts: the last block that reads and prints by itself is the program, with what it needs of earlier blocks; never do two blocks
that stand alone run. A block that only repeats lines of an earlier one, or feeds a program its input, is a demonstration.
Also covered: the body of a function that a prompt begins; words, examples and tracebacks after a program in its block.
Not covered: names that are made while a program runs.
"""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence, Set

from pipeline.graders.code.program import BLOCK_END

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_READS = frozenset({"input", "raw_input", "stdin", "open", "fileinput"})
_WRITES = frozenset({"print", "pprint", "stdout", "write", "writelines"})
_OF_TESTS = re.compile(r"(?:test|demo|example|benchmark|main$|time_|timeit|run_)|.*_(?:tests?|demo|example)$|.*Tests?$", re.I)
_MOCKS = re.compile(
    r"stdin\s*=\s*(?:io\.)?(?:StringIO|BytesIO|TextIOWrapper)\((?!\s*(?:sys|os|open)\b)|patch\(|\bsubprocess\b|\bunittest\b|\bpytest\b"
    r"|\binput\s*=\s*lambda\b[^\n]{0,80}(?:next|pop)\("
)
_BROKEN_DEFINITION = re.compile(r"^(?:async def|def|class) (?!test|main\b|Test)", re.MULTILINE)
_BROKEN_SCRIPT = re.compile(r"\binput\(|\bsys\.stdin\b")
_OTHER_TEXT = re.compile(
    r"^(?:>>>|\$ |Traceback \(|```|~~~|\[/?[A-Z]+\]|<[|/\w]|\*\*|[-*] [A-Z`]|\d+\. [A-Z]"
    r"|[A-Z][\w'’]*(?:[,:]? [^=\n]+|[:.!?])$)",
    re.MULTILINE,
)
_ENDS_OF_BODIES = (re.compile(r"\n(?!(?:def|class|import|from|async def) |@|[\s#])"), re.compile(r"\n(?=[^\s#])"))
_MOST_CUTS = 3
_LINES_OF_BLOCK = 1_000_000


def composed(answer: str, prompt: str, *, called: bool) -> tuple[list[ast.stmt], ast.Module | str]:
    """What may fail before the program, and the program: source only where it is not Python. `called`: by tests."""
    sources = answer.split(BLOCK_END)
    trees = [_tree(source, prompt) for source in sources]
    for number, tree in enumerate(trees):
        if tree is not None:
            # What a later block defines has a later line.
            ast.increment_lineno(tree, number * _LINES_OF_BLOCK)
    if len(sources) == 1:
        return [], trees[0] or sources[0]
    return _called(sources, trees) if called else ([], _script(sources, trees))


def _tree(source: str, prompt: str) -> ast.Module | None:
    """The first version of a source that is Python: itself, without what follows it, or as the body that a prompt begins."""
    for version in _versions(source, prompt):
        try:
            tree: ast.Module = ast.parse(version)
            compile(version, "block", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return tree
    return None


def _versions(source: str, prompt: str) -> Iterator[str]:
    yield source
    yield textwrap.dedent(source)
    for _, cut in zip(range(_MOST_CUTS), _OTHER_TEXT.finditer(source), strict=False):
        if cut.start():
            yield source[: cut.start()]
    if prompt.strip():
        body = source.strip("\n")
        for end in _ENDS_OF_BODIES:
            part = end.split(body, maxsplit=1)[0]
            yield f"{prompt}\n{part}"
            yield f"{prompt}\n    {part.lstrip()}"


def _called(sources: Sequence[str], trees: Sequence[ast.Module | None]) -> tuple[list[ast.stmt], ast.Module | str]:
    last = next((number for number in reversed(range(len(trees))) if _defines(sources[number], trees[number])), None)
    if last is None:
        last = max((number for number, tree in enumerate(trees) if tree is not None), default=len(trees) - 1)
    later = [node for tree in trees[last + 1 :] if tree is not None for node in tree.body if _is_fixed(node)]
    earlier = [node for tree in trees[:last] if tree is not None for node in tree.body]
    return later + earlier, trees[last] or sources[last]


def _defines(source: str, tree: ast.Module | None) -> bool:
    """Whether a block defines more than tests and demonstrations, or was to do so."""
    if tree is None:
        return _OTHER_TEXT.match(source) is None and _BROKEN_DEFINITION.search(source) is not None
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                if not _OF_TESTS.match(name):
                    return True
            case ast.Assign(value=ast.Lambda() | ast.Name()):
                return True
    return False


def _is_fixed(node: ast.stmt) -> bool:
    """Whether a statement is an import or a constant."""
    return isinstance(node, _IMPORTS) or (
        isinstance(node, ast.Assign) and not any(isinstance(part, ast.Call | ast.Name) for part in ast.walk(node.value))
    )


def _script(sources: Sequence[str], trees: Sequence[ast.Module | None]) -> ast.Module | str:
    blocks = _Blocks([tree.body if tree is not None and not _is_quoted(sources, number) else []
                      for number, tree in enumerate(trees)])  # fmt: skip
    programs: dict[int, dict[int, set[int]]] = {}
    for number in range(len(trees)):
        needed = blocks.needed(number)
        words = blocks.words(number).union(*(blocks.words(other, needed[other]) for other in needed))
        if blocks.acts(number) and words & _READS and words & _WRITES and not _MOCKS.search(sources[number]):
            asks = {other for other in needed if blocks.words(other, needed[other]) & _READS}
            if blocks.words(number) & _READS or not asks & programs.keys():
                programs[number] = needed
    chosen = max(programs or (number for number in range(len(trees)) if blocks.acts(number)), default=None)
    broken = max((number for number, tree in enumerate(trees)
                  if tree is None and not _OTHER_TEXT.match(sources[number]) and _BROKEN_SCRIPT.search(sources[number])),
                 default=-1)  # fmt: skip
    if chosen is None or broken > chosen:
        return sources[broken]
    needed = programs.get(chosen) or blocks.needed(chosen)
    if any(blocks.acts(other) and len(blocks.bodies[other]) == len(needed[other]) for other in needed):
        # The program goes on from what was read before, in order.
        for other in range(chosen):
            if blocks.acts(other) and other not in programs and blocks.words(other) & _READS:
                needed[other] = set(range(len(blocks.bodies[other])))
    body = blocks.taken(needed) + blocks.bodies[chosen]
    body.sort(key=lambda node: not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))
    return ast.Module(body, [])


def _is_quoted(sources: Sequence[str], number: int) -> bool:
    """Whether the lines of a block stand together in an earlier one, below its first line."""
    lines, *earlier = (
        "\n".join(["", *filter(None, map(str.strip, source.split("\n"))), ""])
        for source in (sources[number], *sources[:number])
    )
    return any(other.find(lines) > 0 for other in earlier)


class _Blocks:
    """The statements of the blocks, which of them read or print when they run, and which need others."""

    def __init__(self, bodies: Sequence[list[ast.stmt]]) -> None:
        self.bodies = bodies
        self._words = [[_words(node) for node in body] for body in bodies]
        self._binds = [[bound_in([node]) for node in body] for body in bodies]
        named = [(node.name, words) for body, all_words in zip(bodies, self._words, strict=True)
                 for node, words in zip(body, all_words, strict=True) if isinstance(node, _DEFINITIONS)]  # fmt: skip
        loud = set(_READS | _WRITES)
        while new := {name for name, words in named if words & loud} - loud:
            loud |= new
        self._loud = [[not isinstance(node, (*_DEFINITIONS, *_IMPORTS)) and (bool(words & loud) or isinstance(node, ast.Assert))
                       for node, words in zip(body, all_words, strict=True)]
                      for body, all_words in zip(bodies, self._words, strict=True)]  # fmt: skip

    def acts(self, number: int) -> bool:
        """Whether a block reads or prints when it runs."""
        return any(self._loud[number])

    def words(self, number: int, some: Iterable[int] | None = None) -> frozenset[str]:
        """The names and attributes in the statements of a block, or in some of them."""
        words = self._words[number]
        return frozenset().union(*(words if some is None else (words[each] for each in some)))

    def taken(self, needed: dict[int, set[int]]) -> list[ast.stmt]:
        return [self.bodies[other][each] for other in sorted(needed) for each in sorted(needed[other])]

    def needed(self, number: int) -> dict[int, set[int]]:
        """The statements of earlier blocks that a block needs: definitions alone, or whole blocks for what they read."""
        taken: dict[int, set[int]] = {}
        seen = {name for bound in self._binds[number] for name in bound}
        waiting = [name for node in self.bodies[number] for name in _free(node)]
        while waiting:
            if (name := waiting.pop()) in seen:
                continue
            seen.add(name)
            for other in reversed(range(number)):
                places = {place for place, bound in enumerate(self._binds[other]) if name in bound}
                if not places:
                    continue
                if not self.acts(other) or any(self._loud[other][place] for place in places):
                    places = set(range(len(self.bodies[other])))
                new = places - taken.setdefault(other, set())
                taken[other] |= new
                waiting += [each for place in new for each in _free(self.bodies[other][place])]
                break
        return taken


def _words(node: ast.AST) -> frozenset[str]:
    return frozenset(
        part.id if isinstance(part, ast.Name) else part.attr
        for part in ast.walk(node)
        if isinstance(part, ast.Name | ast.Attribute)
    )


def _free(node: ast.AST) -> frozenset[str]:
    try:
        return names_in(node)
    except RecursionError:
        return _words(node)


def names_in(node: ast.AST) -> frozenset[str]:
    """The names that a piece of a program reads and does not bind in a scope of its own. Raises RecursionError."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return frozenset({name})
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
            body = node.body if isinstance(node.body, list) else [node.body]
            arguments = node.args
            own = {each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
            own |= {each.arg for each in (arguments.vararg, arguments.kwarg) if each is not None}
            inside = _read(body) - own - bound_in(body)
            decorators = [] if isinstance(node, ast.Lambda) else node.decorator_list
            return inside | _read([*decorators, *arguments.defaults, *(each for each in arguments.kw_defaults if each)])
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            return _read(ast.iter_child_nodes(node)) - bound_in(node.generators)
    return _read(ast.iter_child_nodes(node))


def _read(nodes: Iterable[ast.AST]) -> frozenset[str]:
    return frozenset().union(*map(names_in, nodes))


def bound_in(nodes: Iterable[ast.AST]) -> Set[str]:
    """The names that are bound in the scope of these nodes."""
    bound: set[str] = set()
    elsewhere: set[str] = set()
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
                continue
            case ast.Lambda():
                continue
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name=name, asname=shown):
                bound.add(shown or name.partition(".")[0])
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                elsewhere.update(names)
            case _:
                pass
        waiting.extend(ast.iter_child_nodes(node))
    return bound - elsewhere
