"""Commands about an account: its settings and its portal links."""

from typing import Any

import click

from hookline.cli.exits import USAGE, CommandError, Errors
from hookline.cli.options import checked, connect, json_option, read_span, url_option
from hookline.cli.output import although, print_fields, say


@click.group()
def accounts() -> None:
    """Manage accounts: where each is told of trouble, and links to its portal."""


@accounts.command()
@click.argument("account")
@url_option
@json_option
def show(account: str, url: str | None, as_json: bool) -> None:
    """Show an account's settings. Of a URL only the host is shown."""
    with Errors():
        _print(connect(url).get(account_path(account)), as_json=as_json)


@accounts.command("set")
@click.argument("account")
@click.option("--email", metavar="ADDRESS", help="Address that gets mail; '' removes it.")
@click.option("--webhook", metavar="URL", help="URL that alerts are posted to as JSON; '' removes it.")
@click.option("--slack", metavar="URL", help="Incoming webhook of Slack or a compatible chat; '' removes it.")
@url_option
@json_option
def set_account(account: str, url: str | None, as_json: bool, **channels: str | None) -> None:
    """Set where an account is told of trouble; the rest stays as it is. The operators' account is `hookline`."""
    with Errors():
        given = {name: value for name, value in channels.items() if value is not None}
        if not given:
            raise CommandError("give what to change: --email, --webhook or --slack.", USAGE)
        path, client = account_path(account), connect(url)
        notify = {**client.get(path)["notify"], **given}  # a masked URL keeps the stored one
        kept = {name: value for name, value in notify.items() if value}
        _print(client.put(path, {"notify": kept}), as_json=as_json)


@accounts.command("portal-link")
@click.argument("account")
@click.option(
    "--expires-in",
    callback=read_span,
    metavar="DURATION",
    help="How long the link can be opened, such as 60s.  [default: 5m]",
)
@click.option(
    "--visit",
    callback=read_span,
    metavar="DURATION",
    help="How long the visit may last that it opens, such as 8h.  [default: 1h]",
)
@click.option("--read-only", is_flag=True, help="Let the visitor look, and change nothing.")
@url_option
@json_option
def portal_link(
    account: str,
    expires_in: float | None,
    visit: float | None,
    read_only: bool,
    url: str | None,
    as_json: bool,
) -> None:
    """Print a link that opens one visit to an account's portal. Whoever has it may use it, once."""
    with Errors():
        said = {
            "expires_in_s": None if expires_in is None else round(expires_in),
            "visit_s": None if visit is None else round(visit),
            "may_act": False if read_only else None,
        }
        body = {name: value for name, value in said.items() if value is not None}
        found = connect(url).post(f"{account_path(account)}/portal-link", body)
        with although("the link is created", step="create another one"):
            say(found["url"], found, as_json=as_json)


def account_path(account: str) -> str:
    """The path of an account; a usage error if the name is invalid."""
    from hookline.validate.names import check_account

    return f"/v1/accounts/{checked(account, check_account)}"


def _print(found: dict[str, Any], *, as_json: bool) -> None:
    if not as_json:
        found = {
            "id": found["id"],
            **found["notify"],
            **{name: value for name, value in found.items() if name not in ("id", "notify")},
        }
    print_fields(found, as_json=as_json)
