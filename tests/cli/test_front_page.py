"""The front page says the right things, and appears soon."""

import resource
import subprocess
import sys

import click
import pytest

from hookline.cli.overview import COMMANDS, SECTIONS, front_page
from hookline.cli.root import root
from server_process import COMMAND, environment, run

LINES = {name: help for section in SECTIONS.values() for name, _, help in section}
HEAVY = (
    "asyncio",
    "asyncpg",
    "msgspec",
    "rich",
    "sqlite3",
    "ssl",
    "starlette",
    "structlog",
    "uvicorn",
    "uvloop",
)
LOADED = (
    "import sys\nfrom hookline.cli import main\n"
    "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
    f"print([name for name in {(*HEAVY, 'click')} if name in sys.modules], file=sys.stderr)"
)
STARTS = 8  # the cheapest of these counts: other work on the machine can only add to a start


def loaded(*arguments: str) -> tuple[str, str]:
    """What was printed, and which of the heavy modules were loaded for it."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr.strip()


def cheapest(*commands: list[str]) -> list[float]:
    """The least processor time of each, by turns: by the clock, a start that is interrupted seems a long one."""
    best = [float("inf")] * len(commands)
    for _ in range(STARTS):
        for place, command in enumerate(commands):
            began = spent_on_children()
            subprocess.run(command, env=environment(), stdout=subprocess.DEVNULL, check=True)
            best[place] = min(best[place], spent_on_children() - began)
    return best


def spent_on_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_front_page_lists_every_command_and_loads_none():
    for option in ("--help", "-h"):
        assert loaded(option) == (front_page() + "\n", "[]")
    for name, help in LINES.items():
        assert f"  {name.ljust(max(map(len, LINES)))}  {help}\n" in front_page()
    assert loaded("--version") == ("hookline 0.1.0\n", "[]")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_s_own_help_opens_with_its_line_and_loads_no_server(name):
    text, modules = loaded(name, "--help")
    assert text.startswith(f"Usage: hookline {name}")
    assert LINES[name] in " ".join(text.split())
    assert modules == "['click']"


def test_help_takes_at_most_five_starts_of_the_interpreter():
    bare, front, command = cheapest(
        [sys.executable, "-c", "pass"], [*COMMAND, "--help"], [*COMMAND, "dead", "replay", "--help"]
    )
    assert front < 5 * bare
    assert command < 10 * bare  # click alone is four


def test_without_a_command_the_front_page_is_a_usage_error(tmp_path):
    result = run(cwd=tmp_path)
    assert (result.returncode, result.stdout, result.stderr) == (2, "", front_page() + "\n")


def test_an_unknown_command_is_a_usage_error_with_the_nearest_one(tmp_path):
    result = run("delivries", cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert "There is no command 'delivries'. Did you mean deliveries?" in result.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serve --prot 1", "There is no option '--prot'. Did you mean --port?"),
        ("serve --bogus", "There is no option '--bogus'."),
        ("serve -x", "There is no option '-x'."),
        ("--verison", "There is no option '--verison'. Did you mean --version?"),
        ("deliveries list --status dead", "There is no option '--status'. Did you mean --state?"),
        ("endpoints lst", "There is no command 'lst'. Did you mean list?"),
        ("endpoints stop", "There is no command 'stop'."),
        ("run", "There is no command 'run'."),
    ],
)
def test_only_what_is_really_near_is_suggested(tmp_path, line, said):
    result = run(*line.split(), cwd=tmp_path)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.endswith(f"Error: {said}\n")


def every_command(
    command: click.Command, path: tuple[str, ...]
) -> list[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    found = [(path, command)] if command.invoke_without_command else []
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        assert child is not None
        found += every_command(child, (*path, name))
    return found


def test_every_option_and_command_says_what_it_is_for():
    for path, command in every_command(root, ()):
        assert (command.help or "").strip(), path
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.help, (path, parameter.name)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(tmp_path, shell):
    result = run("completion", shell, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert "_HOOKLINE_COMPLETE" in result.stdout


def test_bash_completes_commands_and_options(tmp_path):
    def completed(line: str) -> set[str]:
        words = line.split(" ")
        env = {
            "_HOOKLINE_COMPLETE": "bash_complete",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
        }
        # Not a setting, and not refused as one: it starts with an underscore.
        return {each.partition(",")[2] for each in run(cwd=tmp_path, env=env).stdout.splitlines()}

    assert completed("hookline de") == {"deliveries", "dead"} & set(COMMANDS)
    assert completed("hookline dead re") == {"replay"}
    assert "--dry-run" in completed("hookline dead replay --")
