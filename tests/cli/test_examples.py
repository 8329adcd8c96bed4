"""Every help shows examples, and each of them is a command that parses."""

import shlex

import click
import pytest

from cli_reference import commands
from hookline.cli.examples import EXAMPLES, examples_of
from hookline.cli.overview import COMMANDS, front_page
from hookline.cli.root import root

LEAVES = {" ".join(path[1:]): command for path, command in commands()}
GROUPS = sorted({name.partition(" ")[0] for name in LEAVES} - LEAVES.keys())


def help_of(words: str) -> str:
    """What `--help` prints for these words."""
    context = click.Context(root, info_name="hookline")
    command: click.Command = root
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command, context = found, click.Context(found, parent=context, info_name=word)
    return command.get_help(context)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("order.json", "schema.json", "secret.txt", "headers.txt"):
        (tmp_path / name).write_text("{}")


@pytest.mark.parametrize("words", [*LEAVES, *GROUPS])
def test_a_help_shows_examples(words):
    shown = help_of(words)
    assert "Examples:" in shown
    for line in examples_of(words):
        assert f"  {line}\n" in f"{shown}\n"  # whole, on a line of its own


@pytest.mark.parametrize("words", LEAVES)
def test_an_example_is_of_its_command_and_parses(words):
    for line in EXAMPLES[words]:
        given = shlex.split(line.partition(" < ")[0])
        assert given[: 1 + len(words.split())] == ["hookline", *words.split()]
        LEAVES[words].make_context(words, given[1 + len(words.split()) :]).close()


def test_there_are_no_examples_of_commands_that_there_are_not():
    assert EXAMPLES.keys() == LEAVES.keys()


def test_the_front_page_has_examples_too():
    lines = front_page().partition("Examples:\n")[2].split("\n\n")[0].splitlines()
    assert lines
    for line in lines:
        assert shlex.split(line)[1] in COMMANDS
