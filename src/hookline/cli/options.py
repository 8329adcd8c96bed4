"""Options that commands share."""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from hookline import rfc3339
from hookline.cli.choices import REASONS
from hookline.validate.numbers import seconds

if TYPE_CHECKING:
    from hookline.cli.client import Client
    from hookline.config import Settings

_Command = TypeVar("_Command", bound=Callable[..., Any])

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
database_option = click.option(
    "--database",
    metavar="URL",
    help="Database: sqlite:///path.db or postgresql://…  [HOOKLINE_DATABASE; default sqlite:///hookline.db]",
)
url_option = click.option(
    "--url", metavar="URL", help="URL of the server.  [HOOKLINE_URL; default http://127.0.0.1:8080]"
)
limit_option = click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Print at most this many.",
)
utc_option = click.option("--utc", is_flag=True, help="Print times in UTC instead of how long ago they were.")
dry_run_option = click.option("--dry-run", is_flag=True, help="Print what would be done, and change nothing.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")


def read_past(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A time with a zone, or how long ago."""
    return _moment(value, sign=-1)


def read_future(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """A time with a zone, or in how long."""
    return _moment(value, sign=1)


def read_span(context: click.Context, option: click.Parameter, value: str | None) -> float | None:
    """A duration in seconds."""
    if value is None:
        return None
    found = seconds(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a duration such as 500ms, 90s, 15m, 2h or 7d")
    return found


def read_account(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """An account's name."""
    from hookline.validate.names import check_account

    return _named(value, check_account)


def read_type(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """An event type."""
    from hookline.validate.names import check_type

    return _named(value, check_type)


def read_id(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """An id of the thing that the option is named after, or a prefix of it: `--endpoint`, `--event`."""
    if value is None:
        return None
    from hookline.cli.printing.short_ids import looks_like_id

    noun = option.opts[0].removeprefix("--")
    if not looks_like_id(noun, value):
        from hookline import ids

        like = ids.show(noun, bytes(16))
        raise click.BadParameter(f"{value[:100]!r} is not an {noun} id, such as {like}")
    return value


def read_window(context: click.Context, option: click.Parameter, value: str) -> str:
    """How far a report looks back."""
    from hookline.errors import Invalid
    from hookline.validate.windows import window_seconds

    try:
        window_seconds(value)
    except Invalid as error:
        raise click.BadParameter(error.detail) from None
    return value


def _named(value: str | None, check: Callable[[str], str]) -> str | None:
    from hookline.errors import Invalid

    try:
        return None if value is None else check(value)
    except Invalid as error:
        raise click.BadParameter(error.detail) from None


def _moment(value: str | None, *, sign: int) -> str | None:
    if value is None:
        return None
    away = seconds(value) if value[-1:].isalpha() else None
    try:
        if away is not None:
            from hookline.clock import SystemClock

            return rfc3339.show(SystemClock().wall() + sign * away)
        return rfc3339.show(rfc3339.read(value))
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is neither a duration (90s, 15m, 2h, 7d) nor a time (2026-01-31T12:00:00Z)"
        ) from None


def dead_letter_filter(command: _Command) -> _Command:
    """The options that choose dead letters."""
    for option in (
        click.option(
            "--until",
            callback=read_past,
            metavar="TIME",
            help="Only those that died before this time, or more than this long ago.",
        ),
        click.option(
            "--since",
            callback=read_past,
            metavar="TIME",
            help="Only those that died after this time, or less than this long ago, such as 2h.",
        ),
        click.option("--reason", type=click.Choice(REASONS), help="Only those that died for this reason."),
        click.option("--type", "event_type", callback=read_type, help="Only those of events of this type."),
        click.option("--account", callback=read_account, help="Only those of this account."),
        click.option(
            "--endpoint", "endpoint_id", callback=read_id, metavar="ID", help="Only those of this endpoint."
        ),
    ):
        command = option(command)
    return command


def checked(text: str, check: Callable[[str], str]) -> str:
    """A name as a step of a path; a usage error if it is invalid."""
    from hookline.cli.exits import USAGE, CommandError
    from hookline.errors import Invalid

    try:
        return check(text)
    except Invalid as error:
        raise CommandError(error.detail, USAGE) from None


def json_value(text: str | bytes, *, option: str) -> Any:
    """The option's value as JSON; a usage error if it is not JSON."""
    from hookline.cli.exits import USAGE, CommandError

    try:
        return json.loads(text, parse_constant=_no_json)
    except RecursionError:
        raise CommandError(f"{option}: the JSON is nested too deeply.", USAGE) from None
    except ValueError as error:
        hint = f"{text[:100]!r} is not JSON (a string needs quotation marks)"
        detail = hint if isinstance(text, str) else f"not JSON ({error})"
        raise CommandError(f"{option}: {detail}.", USAGE) from None


def _no_json(constant: str) -> Any:
    raise ValueError(constant)  # NaN and Infinity, which only Python reads


def connect(url: str | None) -> "Client":
    """A client for the server that the flag, the variable or the file names."""
    from hookline.cli.client import Client

    found = settings({"url": url})
    return Client(found.url, found.api_key)


def settings(flags: dict[str, Any]) -> "Settings":
    """The settings of this process."""
    return settings_with_sources(flags)[0]


def settings_with_sources(flags: dict[str, Any]) -> "tuple[Settings, dict[str, str]]":
    """The settings of this process, and where each that is not a default comes from."""
    from pathlib import Path

    from hookline import config

    return config.load_with_sources(flags, environ=os.environ, file=Path(config.FILE))
