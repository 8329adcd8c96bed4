"""Type checkers accept the examples and what the page says, and refuse mistakes where they are made."""

import ast
import importlib
import inspect
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hookline import Hookline, HooklineClient, SyncHookline, SyncHooklineClient, client, errors, outbox
from hookline.client.answers import ApiObject
from server_process import environment

ROOT = Path(__file__).parents[2]
WRONG = Path(__file__).parent / "wrong.py"
EXAMPLES = sorted(map(str, (ROOT / "examples").glob("*.py")))


def mistakes(path: Path) -> list[int]:
    """The lines that are marked as wrong."""
    return [n for n, line in enumerate(path.read_text().splitlines(), 1) if line.endswith("# wrong")]


@cache
def mypy(*files: str) -> str:
    return checked([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *files])


@cache
def pyright(*files: str) -> str:
    """The real one, of the package of that name; its program is JavaScript."""
    if (node := shutil.which("node")) is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("node is not installed: make languages")
    program = Path(importlib.import_module("pyright").__file__ or "").parent / "dist/index.js"
    return checked([node, str(program), "--pythonpath", sys.executable, *files])


CHECKERS = pytest.mark.parametrize("checker", [mypy, pyright])


def checked(command: list[str]) -> str:
    done = subprocess.run(
        command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def errors_in(checker: Callable[..., str]) -> dict[str, list[int]]:
    """By file, the lines in which errors are, in order. All files at once: checkers take longest to begin."""
    output = checker(*EXAMPLES, str(WRONG))
    found = re.findall(r"([\w./]+\.py):(\d+)(?::\d+)?(?: -|:) error", output)
    assert found, output
    lines: dict[str, set[int]] = {}
    for file, line in found:
        lines.setdefault(Path(ROOT, file).name, set()).add(int(line))
    return {file: sorted(found) for file, found in lines.items()}


@CHECKERS
def test_the_examples_are_typed(checker):
    assert errors_in(checker).keys() <= {WRONG.name}


@CHECKERS
def test_a_mistake_is_refused_in_its_line_and_nothing_else_is(checker):
    assert len(mistakes(WRONG)) == 21
    assert errors_in(checker)[WRONG.name] == mistakes(WRONG)


# --- what may be said and is answered has a type ---

CLASSES = [Hookline, SyncHookline, HooklineClient, SyncHooklineClient]


def public() -> list[Any]:
    found: list[Any] = [*CLASSES]
    for module in (client, outbox, errors):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if name[0].isupper()]
        found += [each for name in names if inspect.isclass(each := getattr(module, name))]
        found += [each for name in names if inspect.isfunction(each := getattr(module, name))]
    return found


def annotations(of: Any) -> dict[str, str]:
    """Every annotation that a caller sees, as it is written."""
    found: dict[str, str] = {}
    for each in inspect.getmro(of) if inspect.isclass(of) else [of]:
        if not each.__module__.startswith("hookline"):
            continue
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(each)))):
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef() if (
                    node.name[0] != "_" or node.name == "__init__"
                ):
                    named = node.args
                    given = [*named.posonlyargs, *named.args, *named.kwonlyargs, named.vararg, named.kwarg]
                    said = [argument.annotation for argument in given if argument] + [node.returns]
                    found[f"{each.__name__}.{node.name}"] = " ".join(ast.unparse(one) for one in said if one)
                case ast.AnnAssign(target=ast.Name(id=name)) if name[0] != "_":
                    found[f"{each.__name__}.{name}"] = ast.unparse(node.annotation)
    return found


@pytest.mark.parametrize("of", public(), ids=lambda each: each.__name__)
def test_no_public_signature_says_any(of):
    assert {where: said for where, said in annotations(of).items() if re.search(r"\bAny\b", said)} == {}


RESULTS = [each for each in public() if inspect.isclass(each) and issubclass(each, ApiObject)]


@pytest.mark.parametrize("kind", RESULTS, ids=lambda each: each.__name__)
def test_no_result_has_a_field_that_may_be_unset(kind):
    for field in msgspec.structs.fields(kind):
        assert "UNSET" not in str(field.type).upper()
        assert field.default is not msgspec.UNSET
