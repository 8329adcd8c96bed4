"""Defines the errors that a caller has to handle.

Expected things (a 500 from an endpoint, an open circuit) are values, not errors. Errors of drivers and libraries are
translated into these where they enter.
"""


class HooklineError(Exception):
    """Something that a caller of hookline must handle."""


class NotFound(HooklineError):
    """No object of that kind has that id (or it belongs to another account: the answer is the same)."""

    def __init__(self, noun: str, id: str) -> None:
        super().__init__(f"No {noun} has the id {id!r}.")
        self.noun = noun
        self.id = id


class WrongState(HooklineError):
    """The delivery's state does not allow the verb."""

    def __init__(self, verb: str, state: str) -> None:
        super().__init__(f"A delivery that is {state} cannot be {verb}.")
        self.verb = verb
        self.state = state


class OverlapUnderWay(WrongState):
    """The endpoint's secret is already being rotated."""

    def __init__(self, until: str) -> None:
        HooklineError.__init__(
            self,
            f"The secret is already being rotated: both secrets sign until {until}. "
            "To replace both at once, rotate with overlap_s 0.",
        )
        self.until = until


class NotSending(WrongState):
    """Nothing is sent to the endpoint at present."""

    def __init__(self, state: str) -> None:
        step = "resume" if state == "paused" else "enable"
        HooklineError.__init__(self, f"The endpoint is {state}; {step} it first.")
        self.state = state


class Invalid(HooklineError):
    """Input that can be read but is invalid; `pointer` is a JSON pointer to the culprit."""

    def __init__(self, detail: str, *, pointer: str = "", code: str = "invalid_field") -> None:
        super().__init__(detail)
        self.detail = detail
        self.pointer = pointer
        self.code = code

    def under(self, pointer: str) -> "Invalid":
        """The same error, where the input is a part of something larger."""
        return Invalid(self.detail, pointer=pointer + self.pointer, code=self.code)


class SchemaMismatch(Invalid):
    """A payload that does not match the schema of its type; `errors` are pointers into it, each with what is wrong."""

    def __init__(self, event_type: str, errors: tuple[tuple[str, str], ...]) -> None:
        super().__init__(
            f"The payload does not match the schema of {event_type}.",
            pointer=errors[0][0],
            code="schema_mismatch",
        )
        self.event_type = event_type
        self.errors = errors

    def under(self, pointer: str) -> "SchemaMismatch":
        return SchemaMismatch(self.event_type, tuple((pointer + at, detail) for at, detail in self.errors))


class AccountMismatch(Invalid):
    """A caller bound to one account names another one (the error does not tell whether that account exists)."""

    def __init__(self, pointer: str) -> None:
        detail = "This key is restricted to another account; leave out the account."
        super().__init__(detail, pointer=pointer, code="account_mismatch")

    def under(self, pointer: str) -> "AccountMismatch":
        return AccountMismatch(pointer + self.pointer)


class Unreadable(HooklineError):
    """Input that cannot be read at all: not one JSON value, a duplicate key, nested too deeply."""

    def __init__(self, detail: str, *, code: str = "invalid_json") -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code


class TooLarge(HooklineError):
    """Input over a size limit."""

    def __init__(self, what: str, *, limit_bytes: int) -> None:
        super().__init__(f"{what} may have at most {limit_bytes:,} bytes.")
        self.limit_bytes = limit_bytes


class IdempotencyConflict(HooklineError):
    """The idempotency key was already used for another event."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The idempotency key {key!r} was used before with another type, payload or deliver_at."
        )
        self.key = key


class StoreUnavailable(HooklineError):
    """The database did not answer; the last write may or may not be committed."""


class AcceptFailed(StoreUnavailable):
    """Nobody foresaw what kept the event from being stored: it may be the event."""


class NotReady(StoreUnavailable):
    """A publish would wait or be refused now."""


class StorageFull(StoreUnavailable):
    """The database cannot write because its disk is full."""


class StoreReadOnly(StoreUnavailable):
    """The database answers but accepts no writes at present: a standby, a failover, an operator."""


class StoreRefused(HooklineError):
    """The database answers but must not be used: unsafe durability, wrong schema, no rights, file in use."""


class RowRefused(StoreRefused):
    """The database accepts writes but not this one: a value in it violates a type or a constraint."""


class SealBroken(HooklineError):
    """A secret in the database is sealed, but not with a key of this server."""


class SealGarbled(SealBroken):
    """A value stored as a sealed secret is not one, whatever the key."""


class EndpointUnusable(HooklineError):
    """A stored endpoint, or a part of a request to it, makes no valid request; names the field."""


class SchemaOutgrown(StoreRefused):
    """The database was migrated by a later version and no longer serves this one."""


class SchemaBehind(StoreRefused):
    """The database lacks migrations that this version needs."""


class SchemaMissing(SchemaBehind):
    """The database exists but has never been migrated."""


class Overloaded(HooklineError):
    """More was handed in than can be held; try again later."""


class ConfigError(HooklineError):
    """A setting has an invalid value; names the setting and what is allowed."""
