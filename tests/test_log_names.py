"""Every line of the log has a name of one form, and docs/logs.md lists it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import hookline

SOURCE = Path(hookline.__file__).parent
DOCUMENT = Path(__file__).parent.parent / "docs" / "logs.md"
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
NAME = re.compile(r"[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*")


class Line(ast.NodeVisitor):
    """The names that a module logs, and where one is not a literal."""

    def __init__(self, tree: ast.AST) -> None:
        self.names: set[str] = set()
        self.unknown: list[int] = []
        self._passing: set[str] = set()  # functions that log the name they are given
        self._inside: list[ast.FunctionDef] = []
        self.visit(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) in self._passing:
                self._add(node, node.args[0])

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._inside.append(node)
        self.generic_visit(node)
        self._inside.pop()

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in LEVELS:
            source = node.func.value
            if isinstance(source, ast.Name) and source.id in ("log", "_log"):
                name = node.args[0]
                if isinstance(name, ast.Name) and self._inside and name.id == "event":
                    self._passing.add(self._inside[-1].name)
                else:
                    self._add(node, name)
        self.generic_visit(node)

    def _add(self, node: ast.Call, name: ast.expr) -> None:
        if isinstance(name, ast.Constant) and isinstance(name.value, str):
            self.names.add(name.value)
        else:
            self.unknown.append(node.lineno)


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def modules() -> Iterator[tuple[Path, Line]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, Line(ast.parse(path.read_text()))


def logged() -> set[str]:
    """The names of all modules; `tell` passes on the ones of a server's own messages."""
    names = {name for _, found in modules() for name in found.names}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _called(node) == "tell" and node.args:
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    names.add(first.value)
    return names


def test_a_name_that_is_not_literal_is_found():
    found = Line(
        ast.parse("log.info(x)\nlog.info('a.b')\ndef say(event):\n  log.info(event)\nsay('c.d')\nsay(y)")
    )
    assert (found.names, found.unknown) == ({"a.b", "c.d"}, [1, 6])


def test_every_line_has_a_literal_name():
    assert [(path.name, line) for path, found in modules() for line in found.unknown] == []


def test_every_name_is_a_noun_and_what_happened_to_it():
    assert {name for name in logged() if not NAME.fullmatch(name)} == set()


def test_the_document_lists_the_names_and_no_others():
    listed = set(re.findall(r"^\| `([a-z_.]+)`", DOCUMENT.read_text(), re.MULTILINE))
    made_of_other_lines = {"library.logged"}
    assert listed == logged() | made_of_other_lines
