"""Lists the commands with their first lines of help.

The front page is printed from this table alone: `hookline --help` and `--version` load nothing that takes time, not a
command and not click.
"""

NAME = "hookline"
ABOUT = "hookline sends webhooks and does not lose them."

# By purpose: name, the module of hookline.cli.commands that has it, its first line of help.
SECTIONS = {
    "Run": (
        ("serve", "operating", "Run the API server and deliver events."),
        ("worker", "operating", "Deliver events without serving the API."),
        ("migrate", "operating", "Bring the database schema up to date."),
        ("prune", "prune", "Delete old finished deliveries and events."),
        ("status", "status", "Say how the installation is, and what fails."),
        ("top", "status", "Show what status shows, live."),
        ("health", "health", "Show how much waits, fails and arrives."),
        ("stats", "stats", "Show how fast an endpoint answers and what."),
        ("alerts", "alerts", "List alerts: what hookline found wrong."),
        ("audit", "audit", "List who changed what, when and from where."),
        ("doctor", "doctor", "Check the installation and suggest fixes."),
        ("secrets", "secrets", "Encrypt, decrypt or count the stored secrets."),
        ("config", "config", "Show the settings and where each comes from."),
        ("version", "operating", "Print the version."),
        ("completion", "completion", "Print the shell completion script."),
    ),
    "Publish and follow": (
        ("send", "send", "Publish an event."),
        ("events", "events", "List events, their deliveries and attempts."),
        ("replay", "events", "Replay an event's finished deliveries."),
        ("deliveries", "deliveries", "List, retry and cancel deliveries: one event to one endpoint."),
        ("outbox", "outbox", "Show outboxes, and retry or discard rows of theirs that were refused."),
        ("dead", "dead", "List, analyse, replay and discard dead letters: failed deliveries."),
    ),
    "Manage": (
        ("endpoints", "endpoints", "Manage endpoints: the URLs that receive events."),
        ("workers", "workers", "List the processes that publish and deliver."),
        ("event-types", "event_types", "Describe event types and set their JSON Schemas."),
        ("accounts", "accounts", "Manage accounts: where each is told of trouble, and links to its portal."),
        ("keys", "keys", "Manage API keys."),
    ),
    "Receive": (
        ("listen", "listen", "Run a development receiver that prints and verifies webhooks."),
        ("sign", "signatures", "Sign a body and print the headers."),
        ("verify", "signatures", "Verify the signature of a captured request."),
    ),
}
EXAMPLES = ("serve --dev", "send order.paid '{\"id\": 42}' --wait", "dead list --since 2h", "doctor")
COMMANDS = {name: module for section in SECTIONS.values() for name, module, _ in section}


def front_page() -> str:
    """The text that `hookline --help` prints."""
    lines = [f"Usage: {NAME} COMMAND [OPTIONS] [ARGUMENTS]…", "", f"  {ABOUT}"]
    width = max(map(len, COMMANDS))
    for title, section in SECTIONS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name.ljust(width)}  {help}" for name, _, help in section]
    lines += ["", "Examples:", *(f"  {NAME} {each}" for each in EXAMPLES)]
    lines += [
        "",
        f"{NAME} COMMAND --help explains a command. Settings come from flags, HOOKLINE_*",
        f"variables and hookline.toml; {NAME} config show lists them.",
        f"{NAME} --version prints the version.",
    ]
    return "\n".join(lines)
