"""What does a doctor see of a database, without changing it?"""

import msgspec


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """Facts; whether they are good is not said here."""

    server: str  # "SQLite 3.40.1", "PostgreSQL 15.4"
    now: float  # its time, in seconds since 1970; of a file: the latest time that was written into it
    settings: dict[str, str]  # those that decide whether a commit survives a crash
    unsafe: str | None  # why it must not be used: too old, a standby, commits that can be lost
    schema: str | None  # what is wrong with the schema; None: it is the one this code knows
    missing_rights: tuple[str, ...] = ()  # "UPDATE on lanes"
