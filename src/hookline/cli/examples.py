"""Lists the examples that `--help` shows, by command."""

EXAMPLES = {
    "serve": (
        "hookline serve --dev",
        "hookline serve --host 0.0.0.0 --database postgresql://hookline@localhost/hookline",
    ),
    "worker": ("hookline worker --database postgresql://hookline@localhost/hookline",),
    "migrate": ("hookline migrate --dry-run", "hookline migrate"),
    "prune": ("hookline prune --dry-run --older-than 60d", "hookline prune --yes"),
    "status": ("hookline status", "hookline status --account acme"),
    "top": ("hookline top",),
    "health": ("hookline health", "hookline health --account acme"),
    "stats": ("hookline stats ep_06f3b1q2a7", "hookline stats ep_06f3b1q2a7 --window 7d --json"),
    "doctor": ("hookline doctor", "hookline doctor --json"),
    "secrets seal": ("hookline secrets seal",),
    "secrets status": ("hookline secrets status",),
    "secrets unseal": ("hookline secrets unseal --yes",),
    "config show": ("hookline config show",),
    "version": ("hookline version --json",),
    "completion": ("hookline completion bash",),
    "send": (
        "hookline send order.paid '{\"id\": 42}'",
        "hookline send order.paid '{\"id\": 42}' --wait --timeout 30s",
        "hookline send order.paid --account acme --idempotency-key order-42 < order.json",
    ),
    "events list": (
        "hookline events list --type order.paid --since 2h",
        "hookline events list --idempotency-key order-42",
    ),
    "events show": ("hookline events show evt_06f3b1q2a7e0095",),
    "events deliveries": ("hookline events deliveries evt_06f3b1q2a7e0095 --state dead",),
    "events attempts": ("hookline events attempts evt_06f3b1q2a7e0095",),
    "replay": (
        "hookline replay evt_06f3b1q2a7e0095 --dry-run",
        "hookline replay evt_06f3b1q2a7e0095 --endpoint ep_06f3b1q2a7 --state dead",
    ),
    "deliveries list": (
        "hookline deliveries list --state pending",
        "hookline deliveries list --endpoint ep_06f3b1q2a7 --since 2h --utc",
    ),
    "deliveries show": ("hookline deliveries show dlv_06f3b1q2a7e0095.0",),
    "deliveries attempts": ("hookline deliveries attempts dlv_06f3b1q2a7e0095.0 --limit 1",),
    "deliveries retry": ("hookline deliveries retry dlv_06f3b1q2a7e0095.0",),
    "deliveries cancel": ("hookline deliveries cancel dlv_06f3b1q2a7e0095.0",),
    "dead list": (
        "hookline dead list --since 2h",
        "hookline dead list --endpoint ep_06f3b1q2a7 --reason exhausted",
    ),
    "dead analyse": ("hookline dead analyse", "hookline dead analyse --window 7d --endpoint ep_06f3b1q2a7"),
    "dead show": ("hookline dead show dlv_06f3b1q2a7e0095.0",),
    "dead replay": (
        "hookline dead replay dlv_06f3b1q2a7e0095.0",
        "hookline dead replay --endpoint ep_06f3b1q2a7 --since 2h --dry-run",
        "hookline dead replay --endpoint ep_06f3b1q2a7 --since 2h",
    ),
    "dead discard": (
        "hookline dead discard dlv_06f3b1q2a7e0095.0",
        "hookline dead discard --until 30d --dry-run",
    ),
    "outbox list": ("hookline outbox list", "hookline outbox list --code schema_mismatch --since 2h"),
    "outbox show": ("hookline outbox show evt_06f3b1q2a7e0095",),
    "outbox retry": (
        "hookline outbox retry evt_06f3b1q2a7e0095",
        "hookline outbox retry --code schema_mismatch --dry-run",
    ),
    "outbox discard": ("hookline outbox discard evt_06f3b1q2a7e0095",),
    "outbox sources": ("hookline outbox sources",),
    "outbox forget": ("hookline outbox forget postgresql://db.example/shop",),
    "dead jobs": ("hookline dead jobs", "hookline dead jobs --discards"),
    "endpoints list": (
        "hookline endpoints list",
        "hookline endpoints list --circuit open",
        "hookline endpoints list --account acme --disabled",
    ),
    "endpoints create": (
        "hookline endpoints create https://hooks.example.com/ --event 'order.*'",
        "hookline endpoints create https://hooks.example.com/ --event '*' --retry '[0, 5, 60]'",
    ),
    "endpoints update": (
        "hookline endpoints update ep_06f3b1q2a7 --to https://hooks.example.com/new",
        "hookline endpoints update ep_06f3b1q2a7 --rate 20 --field timeout_ms=5000",
    ),
    "endpoints show": ("hookline endpoints show ep_06f3b1q2a7",),
    "endpoints delete": ("hookline endpoints delete ep_06f3b1q2a7 --dry-run",),
    "endpoints pause": ("hookline endpoints pause ep_06f3b1q2a7",),
    "endpoints resume": ("hookline endpoints resume ep_06f3b1q2a7",),
    "endpoints enable": ("hookline endpoints enable ep_06f3b1q2a7",),
    "endpoints disable": ("hookline endpoints disable ep_06f3b1q2a7",),
    "endpoints reset-circuit": ("hookline endpoints reset-circuit ep_06f3b1q2a7",),
    "endpoints secret": ("hookline endpoints secret ep_06f3b1q2a7",),
    "endpoints rotate": ("hookline endpoints rotate ep_06f3b1q2a7 --overlap 7d",),
    "endpoints test": ("hookline endpoints test ep_06f3b1q2a7",),
    "endpoints recover": (
        "hookline endpoints recover ep_06f3b1q2a7",
        "hookline endpoints recover ep_06f3b1q2a7 --no-replay",
    ),
    "alerts": ("hookline alerts", "hookline alerts --all --kind circuit_open"),
    "alerts test": ("hookline alerts test acme", "hookline alerts test hookline --json"),
    "audit": (
        "hookline audit --since 7d",
        "hookline audit --account acme --action endpoint.updated --utc",
        "hookline audit --subject ep_06f3b1q2a7 --json",
    ),
    "workers": ("hookline workers",),
    "event-types list": ("hookline event-types list",),
    "event-types show": ("hookline event-types show order.paid",),
    "event-types set": (
        "hookline event-types set order.paid --description 'An order was paid.'",
        "hookline event-types set order.paid --schema schema.json",
    ),
    "event-types delete": ("hookline event-types delete order.paid --dry-run",),
    "accounts show": ("hookline accounts show acme",),
    "accounts set": (
        "hookline accounts set acme --email ops@acme.example",
        "hookline accounts set hookline --slack https://chat.example.com/hooks/4f9a --email ''",
    ),
    "accounts portal-link": (
        "hookline accounts portal-link acme",
        "hookline accounts portal-link acme --expires-in 60s --visit 8h --read-only",
    ),
    "keys create": ("hookline keys create 'the shop' --scope publish --account acme",),
    "keys list": ("hookline keys list",),
    "keys show": ("hookline keys show key_06f3b1q2a7",),
    "keys revoke": ("hookline keys revoke key_06f3b1q2a7",),
    "listen": (
        "hookline listen --register --event 'order.*'",
        "hookline listen --register --forward http://localhost:3000/hook",
        "hookline listen --port 9000 --secret-file secret.txt",
    ),
    "sign": ("hookline sign --secret-file secret.txt --type order.paid order.json",),
    "verify": ("hookline verify --secret-file secret.txt --headers headers.txt order.json",),
}
_MOST = 5  # for a group of commands


def examples_of(command: str) -> tuple[str, ...]:
    """The examples of a command; of a group, the first of each of its commands."""
    if command in EXAMPLES:
        return EXAMPLES[command]
    return tuple(lines[0] for name, lines in EXAMPLES.items() if name.startswith(f"{command} "))[:_MOST]


def examples_text(command: str) -> str:
    """The part of a command's help that shows its examples."""
    lines = examples_of(command)
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)]) if lines else ""
