"""Lists the commands with their first lines of help.

The front page is printed from this table alone: `hookline --help` and `--version` load nothing that takes time, not a
command and not click.
"""

NAME = "hookline"
ABOUT = "hookline sends webhooks and does not lose them."

# By purpose: name, the module of hookline.cli.commands that has it, its first line of help.
SECTIONS = {
    "Run it": (
        ("serve", "operating", "Run the API and deliver."),
        ("worker", "operating", "Deliver, without the API: any number on one PostgreSQL."),
        ("migrate", "operating", "Bring the database's schema up to date."),
        ("prune", "prune", "Delete what is finished and old, beside a running server."),
        ("doctor", "doctor", "Say what is wrong here, and what to do about it."),
        ("secrets", "secrets", "Secrets in the database: sealed with HOOKLINE_SECRET_KEY, or plain."),
        ("config", "config", "Settings: what is in force, and where it comes from."),
        ("version", "operating", "Print the version."),
        ("completion", "completion", "Print what makes a shell complete commands."),
    ),
    "Publish and follow": (
        ("send", "send", "Publish an event."),
        ("events", "events", "Events: what was published, and its deliveries."),
        ("replay", "events", "Replay an event's deliveries, whatever their state."),
        ("deliveries", "deliveries", "Deliveries: an event on its way to one endpoint."),
        ("dead", "dead", "Dead letters: deliveries that were given up."),
    ),
    "Manage": (
        ("endpoints", "endpoints", "Endpoints: who gets which events."),
        ("event-types", "event_types", "Event types: what they mean, and how their payloads look."),
        ("keys", "keys", "API keys: who may call the server, and for what."),
    ),
    "Receive": (
        ("listen", "listen", "Receive webhooks here: show them, check them, pass them on."),
        ("sign", "signatures", "Print the headers that sign a body."),
        ("verify", "signatures", "Check a request that was captured: headers and body."),
    ),
}
COMMANDS = {name: module for section in SECTIONS.values() for name, module, _ in section}


def front_page() -> str:
    """The text that `hookline --help` prints."""
    lines = [f"Usage: {NAME} COMMAND [OPTIONS] [ARGUMENTS]…", "", f"  {ABOUT}"]
    width = max(map(len, COMMANDS))
    for title, section in SECTIONS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name.ljust(width)}  {help}" for name, _, help in section]
    lines += [
        "",
        f"{NAME} COMMAND --help says more. Settings are flags, HOOKLINE_* variables or hookline.toml:",
        f"see {NAME} config show. {NAME} --version prints the version.",
    ]
    return "\n".join(lines)
