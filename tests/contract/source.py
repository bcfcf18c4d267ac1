"""Python sources of a package, read as syntax and never imported: what a class has, and of which class an attribute is.

Seen are class bodies, dataclass fields, methods, properties and what `__init__` assigns to `self`, of base classes too, but for
what these leave to their subclasses. The class of an attribute comes from its annotation, or from what is assigned to it where
that is a parameter, one of its attributes or a call of a class. Names that are made at run time are not seen.
"""

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEPTH = 12
"""Imports and bases that are followed from one name."""


@dataclass(frozen=True, slots=True)
class Found:
    """A top-level name: the module that defines it, and its definition. `node` is None for a module itself."""

    module: "Module"
    node: ast.stmt | None


@dataclass
class Module:
    """One file: its top-level definitions and imports, those within `if` and `try` too."""

    name: str
    is_package: bool
    tree: ast.Module

    @cached_property
    def names(self) -> dict[str, ast.stmt]:
        return {name: node for node in _flat(self.tree.body) for name in _defined(node)}

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """Local name -> (module, name there). `import a.b as c` has the name ""."""
        found: dict[str, tuple[str, str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                found.update({alias.asname or alias.name: (alias.name, "") for alias in node.names})
            elif isinstance(node, ast.ImportFrom):
                found.update({alias.asname or alias.name: (self._absolute(node), alias.name) for alias in node.names})
        return found

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - node.level + self.is_package]
        return ".".join([*base, *([node.module] if node.module else [])])


@dataclass
class Source:
    """The sources in a folder that holds the package. `changed`: by the path of a file, what to do to its text first."""

    folder: Path
    changed: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def find(self, module: str, name: str, depth: int = _DEPTH) -> Found | None:
        """A name of a module, wherever it is defined. `name` "" is the module itself."""
        own = self.module(module)
        if own is None or not depth:
            return None
        if not name:
            return Found(own, None)
        if name in own.names:
            return Found(own, own.names[name])
        if name in own.imports:
            there, original = own.imports[name]
            if found := self.find(there, original, depth - 1):
                return found
        below = self.module(f"{module}.{name}")
        return Found(below, None) if below else None

    def named(self, place: str) -> Found | None:
        """`package.module:Name`."""
        module, _, name = place.partition(":")
        return self.find(module, name)

    def members(self, owner: Found) -> dict[str, Found]:
        """The names of a class, or of a module, with their definitions. Those of nearer classes win."""
        if owner.node is None:
            names: set[str] = {*owner.module.names, *owner.module.imports}
            found = {name: self.find(owner.module.name, name) for name in names}
            return {name: where for name, where in found.items() if where}
        assert isinstance(owner.node, ast.ClassDef)
        members: dict[str, Found] = {}
        for each in self.lineage(owner):
            assert isinstance(each.node, ast.ClassDef)
            for name, node in _members(each.node):
                if each.node is not owner.node and is_abstract(node):
                    continue
                members.setdefault(name, Found(each.module, node))
        return members

    def lineage(self, owner: Found, depth: int = _DEPTH) -> Iterator[Found]:
        """A class and its bases, nearest first, as far as they are in this source."""
        yield owner
        assert isinstance(owner.node, ast.ClassDef)
        for base in owner.node.bases if depth else []:
            for name in _names(base):
                found = self.find(owner.module.name, name)
                if found and isinstance(found.node, ast.ClassDef):
                    yield from self.lineage(found, depth - 1)
                    break

    def type_of(self, member: Found, owner: Found) -> Found | None:
        """The class of a member's value; of a method, of what it returns. None where the source does not say."""
        node = member.node
        if node is None or isinstance(node, ast.ClassDef):
            return member
        if isinstance(node, ast.AnnAssign):
            return self._annotated(node.annotation, member.module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return self._annotated(node.returns, member.module) if node.returns else None
        if isinstance(node, ast.Assign):
            return self._assigned(node.value, owner, member.module)
        return None

    def is_foreign(self, member: Found) -> bool:
        """Whether a member's class comes from another package, of which this source says nothing."""
        if not isinstance(member.node, ast.AnnAssign):
            return False
        own = member.module.name.split(".")[0]
        imports = member.module.imports
        return any(name in imports and imports[name][0].split(".")[0] != own for name in _names(member.node.annotation))

    def parameters(self, callable_: Found) -> tuple[list[str], set[str], bool] | None:
        """Of a function, or of a class's constructor: the positional parameters in order, all parameters, and whether it takes
        any keyword. `self` and `cls` are left out. None where there is nothing to call."""
        if isinstance(callable_.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return _signature(callable_.node)
        if not isinstance(callable_.node, ast.ClassDef):
            return None
        members = self.members(callable_)
        init = members.get("__init__")
        if init and isinstance(init.node, ast.FunctionDef):
            return _signature(init.node)
        # A dataclass, a msgspec.Struct or a pydantic model: its fields are its parameters.
        fields = [name for name, member in members.items() if isinstance(member.node, ast.AnnAssign)]
        return fields, set(fields), False

    def _read(self, name: str) -> Module | None:
        base = self.folder.joinpath(*name.split("."))
        for path, is_package in ((base / "__init__.py", True), (base.with_suffix(".py"), False)):
            if path.is_file():
                change = self.changed.get(path.relative_to(self.folder).as_posix())
                if change is None:
                    return _parsed(path, name, is_package)
                return Module(name, is_package, ast.parse(change(path.read_text("utf-8"))))
        return None

    def _annotated(self, annotation: ast.expr, module: Module) -> Found | None:
        for name in _names(annotation):
            found = self.find(module.name, name)
            if found and isinstance(found.node, ast.ClassDef):
                return found
        return None

    def _assigned(self, value: ast.expr, owner: Found, module: Module) -> Found | None:
        if isinstance(value, ast.Call):
            return self._annotated(value.func, module)
        if isinstance(value, ast.Name) and isinstance(owner.node, ast.ClassDef):
            for each in self.lineage(owner):
                assert isinstance(each.node, ast.ClassDef)
                for method in (
                    node for node in each.node.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
                ):
                    for argument in _arguments(method):
                        if argument.arg == value.id and argument.annotation is not None:
                            return self._annotated(argument.annotation, each.module)
        if isinstance(value, ast.Attribute):
            before = self._assigned(value.value, owner, module)
            if before and isinstance(before.node, ast.ClassDef) and (member := self.members(before).get(value.attr)):
                return self.type_of(member, before)
        return None


def is_abstract(node: ast.stmt) -> bool:
    """Whether a method is left to subclasses."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
    return any("abstractmethod" in ast.unparse(decorator) for decorator in decorators)


@cache
def _parsed(path: Path, name: str, is_package: bool) -> Module:
    return Module(name, is_package, ast.parse(path.read_text("utf-8")))


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        if isinstance(node, ast.If):
            yield from _flat([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            handled = [each for handler in node.handlers for each in handler.body]
            yield from _flat([*node.body, *handled, *node.orelse])
        else:
            yield node


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _members(owner: ast.ClassDef) -> Iterator[tuple[str, ast.stmt]]:
    for node in _flat(owner.body):
        for name in _defined(node):
            yield name, node
    for method in owner.body:
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in ast.walk(method):
                if isinstance(statement, ast.Assign | ast.AnnAssign):
                    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                    for target in targets:
                        if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                            yield target.attr, statement


def _names(expression: ast.expr) -> Iterator[str]:
    """The names in an annotation, in order, those in quotes too."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield from _names(ast.parse(expression.value, mode="eval").body)
    elif isinstance(expression, ast.Name):
        yield expression.id
    elif isinstance(expression, ast.Attribute):
        yield expression.attr
    else:
        for child in ast.iter_child_nodes(expression):
            if isinstance(child, ast.expr):
                yield from _names(child)


def _arguments(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _signature(function: Function) -> tuple[list[str], set[str], bool]:
    static = any(ast.unparse(decorator) == "staticmethod" for decorator in function.decorator_list)
    positional = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    first = positional[:1]
    if not static and first and first[0] in ("self", "cls"):
        positional = positional[1:]
    everything = {argument.arg for argument in _arguments(function)} - {"self", "cls"}
    return positional, everything, function.args.kwarg is not None
