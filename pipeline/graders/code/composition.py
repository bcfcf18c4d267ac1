"""Makes one program of the blocks of an answer, in the confined process that runs it. Pure, and runs nothing.

Called programs: the last block that defines more than tests is the program. The blocks before it run first, statement by
statement, and what fails there is left out; of those after it, only imports and constants count.
Scripts: the last block that reads and prints by itself is the program, with what it needs of earlier blocks; of two blocks that
stand alone one runs. A block that only repeats lines of an earlier one, or feeds a program its input, is a demonstration.
Also covered: the body of a function that a prompt begins; words, examples and tracebacks after a program in its block.
Not covered: names that are made while a program runs.
"""

import ast
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence, Set

from pipeline.graders.code.program import BLOCK_END

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_IMPORTS = (ast.Import, ast.ImportFrom)
_READS = frozenset({"input", "raw_input", "stdin", "open", "fileinput"})
_WRITES = frozenset({"print", "pprint", "stdout", "write", "writelines"})
_OF_TESTS = re.compile(
    r"(?:test|demo|example|benchmark|main$|time_|timeit|run_|print_|show_|usage|verify_)|.*_(?:tests?|demo|example)$|.*Tests?$",
    re.I,
)
_MOCKS = re.compile(
    r"stdin\s*=\s*(?:io\.)?(?:StringIO|BytesIO|TextIOWrapper)\((?!\s*(?:sys|os|open)\b)|patch\(|\bsubprocess\b|\bunittest\b|\bpytest\b"
    r"|\binput\s*=\s*lambda\b[^\n]{0,80}(?:next|pop)\("
)
_BROKEN_DEFINITION = re.compile(r"^(?:async def|def|class) (?!test|main\b|Test)", re.MULTILINE)
_BROKEN_SCRIPT = re.compile(r"\binput\(|\bsys\.stdin\b")
_OTHER_TEXT = re.compile(
    r"^(?:>>>|\$ |(?:python|pip)3? [\w./-]|pytest\b|-?\d+(?: -?\d+)+$"
    r"|Traceback \(|```|~~~|\[/?[A-Z]+\]|<[|/\w]|\*\*|[-*] |\d+\. [A-Z]|[a-z]+(?: [\w',-]+){2,30}\.$"
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
            yield textwrap.dedent(source[: cut.start()])
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
        return _is_broken(source, _BROKEN_DEFINITION)
    run = {word for node in tree.body if not isinstance(node, DEFINITIONS) for word in _words(node)}
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                # Problems ask for functions such as test_distinct(data). Tests have no arguments or a mark, or run at once.
                asked = isinstance(node, FUNCTIONS) and node.args.args and not node.decorator_list
                if not _OF_TESTS.match(name) or (asked and (name.startswith("test_") or name not in run)):
                    return True
            case ast.Assign(value=ast.Lambda() | ast.Name()):
                return True
    return False


def _is_fixed(node: ast.stmt) -> bool:
    return isinstance(node, _IMPORTS) or (
        isinstance(node, ast.Assign) and not any(isinstance(part, ast.Call | ast.Name) for part in ast.walk(node.value))
    )


class _Part:
    """A statement of a block. `acts`: it reads or prints when it runs, or tests."""

    def __init__(self, node: ast.stmt) -> None:
        self.node = node
        self.words, self.binds = _words(node), bound_in([node])
        self.acts = isinstance(node, ast.Assert)


def _script(sources: Sequence[str], trees: Sequence[ast.Module | None]) -> ast.Module | str:
    bodies = [tree.body if tree is not None and not _is_quoted(sources, at) else [] for at, tree in enumerate(trees)]
    blocks = [[_Part(node) for node in body] for body in bodies]
    every = [part for block in blocks for part in block]
    active = set(_READS | _WRITES)
    named = [(part.node.name, part.words) for part in every if isinstance(part.node, DEFINITIONS)]
    while new := {name for name, words in named if words & active} - active:
        active |= new
    for part in every:
        part.acts = part.acts or (bool(part.words & active) and not isinstance(part.node, (*DEFINITIONS, *_IMPORTS)))
    acts = [number for number, block in enumerate(blocks) if any(part.acts for part in block)]
    programs: list[int] = []
    for number in acts:
        needed = _needed(blocks, number)
        own = {word for part in blocks[number] for word in part.words}
        reading = {at for at, part in needed if part.words & _READS}
        words = own.union(*(part.words for _, part in needed))
        if words & _READS and words & _WRITES and not _MOCKS.search(sources[number]):
            # One that only calls an earlier program shows its use.
            programs += [number] if own & _READS or reading.isdisjoint(programs) else []
    chosen = max(programs or acts, default=-1)
    broken = [at for at, tree in enumerate(trees) if tree is None and _is_broken(sources[at], _BROKEN_SCRIPT)]
    if chosen < 0 or (broken and broken[-1] > chosen):
        return sources[broken[-1] if broken else -1]
    needed = _needed(blocks, chosen)
    if any(part.acts for _, part in needed):
        # It goes on from what was read before, in order.
        before = [at for at in acts if at < chosen and at not in programs]
        reads = [at for at in before if any(part.words & _READS for part in blocks[at])]
        needed += [(at, part) for at in reads for part in blocks[at]]
    used = {id(part) for _, part in needed} | set(map(id, blocks[chosen]))
    body = [part.node for part in every if id(part) in used]
    body.sort(key=lambda node: not (isinstance(node, ast.ImportFrom) and node.module == "__future__"))
    return ast.Module(body, [])


def _needed(blocks: Sequence[list[_Part]], number: int) -> list[tuple[int, _Part]]:
    """What a block needs of earlier ones, with their numbers: single definitions, or whole blocks where what is read counts."""
    found: list[tuple[int, _Part]] = []
    seen = {name for part in blocks[number] for name in part.binds}
    waiting = [name for part in blocks[number] for name in _free(part.node)]
    while waiting:
        name = waiting.pop()
        at = next((at for at in reversed(range(number)) if any(name in part.binds for part in blocks[at])), None)
        if name in seen or at is None:
            continue
        seen.add(name)
        binding = [part for part in blocks[at] if name in part.binds]
        is_whole = any(part.acts for part in binding) or not any(part.acts for part in blocks[at])
        new = [(at, part) for part in (blocks[at] if is_whole else binding)]
        known = {id(part) for _, part in found}
        new = [(at, part) for at, part in new if id(part) not in known]
        found += new
        waiting += [name for _, part in new for name in _free(part.node)]
    return found


def _is_quoted(sources: Sequence[str], number: int) -> bool:
    """Whether the lines of a block stand together in an earlier one, below its first line."""
    lines, *earlier = (
        "\n".join(["", *filter(None, map(str.strip, source.split("\n"))), ""])
        for source in (sources[number], *sources[:number])
    )
    return any(other.find(lines) > 0 for other in earlier)


def _is_broken(source: str, program: re.Pattern[str]) -> bool:
    """Whether what is not Python was to be a program, and not an example."""
    return _OTHER_TEXT.match(source) is None and program.search(source) is not None


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
