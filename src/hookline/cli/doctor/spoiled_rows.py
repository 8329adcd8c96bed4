"""Finds stored rows, other than endpoints, of which something cannot be read."""

from collections.abc import Iterator

from hookline import ids
from hookline.cli.doctor.findings import Finding, bad
from hookline.store.contract.doctor import Examination
from hookline.store.spoiled_rows import ID_BYTES, Spoiled

NAMED = 3
_NOUNS = {"Key": "key", "WorkerRow": "worker", "Alert": "alert"}
_SAID = {
    "Account": "the settings of account",
    "Alert": "alert",
    "EventType": "event type",
    "Job": "job",
    "Key": "key",
    "WorkerRow": "worker",
}


def check_spoiled_rows(found: Examination) -> Iterator[Finding]:
    """List them; each is listed elsewhere without what cannot be read, and harms nothing else."""
    spoiled = [f"{_named(each)}: {', '.join(each.fields)} cannot be read" for each in found.spoiled]
    spoiled += [
        f"event type {each.name[:100]}: schema cannot be used ({why})"
        for each in found.event_types
        if each.schema is not None and (why := _why_not(each.schema)) is not None
    ]
    if spoiled:
        more = f"; and {len(spoiled) - NAMED:,} more" if len(spoiled) > NAMED else ""
        yield bad(
            "rows",
            f"{'; '.join(spoiled[:NAMED])}{more}",
            "set it again, or revoke or delete what it belongs to",
        )


def _named(spoiled: Spoiled) -> str:
    id, said = spoiled.id, _SAID.get(spoiled.kind, "a row")
    if isinstance(id, str):
        return f"{said} {id[:100]}"
    noun = _NOUNS.get(spoiled.kind)
    if isinstance(id, bytes) and len(id) == ID_BYTES and noun is not None:
        return f"{said} {ids.show(noun, id)}"
    return f"{said} {id!r}"[:100]


def _why_not(schema: str) -> str | None:
    from hookline.validate.schemas.json_schema import Schema  # only types with a schema pay for the import

    try:
        Schema(schema)
    except Exception as error:  # of any kind: a row may hold anything
        return f"{error}"[:200]
    return None
