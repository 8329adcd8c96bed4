"""The command that shows the settings in force and where each comes from."""

from typing import Any

import click

from hookline.cli.exits import Errors
from hookline.cli.options import json_option, settings_with_sources
from hookline.cli.output import print_json, print_rows


@click.group()
def config() -> None:
    """Show the settings and where each comes from."""


@config.command()
@json_option
def show(as_json: bool) -> None:
    """Print the effective settings; keys and passwords are masked."""
    with Errors():
        from hookline.config import PREFIX, presentable

        settings, sources = settings_with_sources({})
        rows = [
            {
                "setting": name,
                "value": _plain(presentable(name, getattr(settings, name))),
                "from": sources.get(name, "default"),
                "variable": PREFIX + name.upper(),
            }
            for name in settings.__struct_fields__
        ]
        if as_json:
            print_json({each.pop("setting"): each for each in rows})
        else:
            print_rows(rows, ("setting", "value", "from", "variable"), as_json=False)


def _plain(value: Any) -> Any:
    return [str(each) for each in value] if isinstance(value, tuple) else value
