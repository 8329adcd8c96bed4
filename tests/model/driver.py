"""Does one step on both stores and compares it with the reference.

Stores are asynchronous and hypothesis' state machines are not: each verb runs to its end on one event loop that
all examples share. So the steps come one after the other; what happens between two of them is for the tests of
races (`tests/contract`) and the simulation.
"""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from factories import NOW
from hookline.errors import NotFound, StoreRefused, WrongState
from hookline.model import EndpointId
from hookline.store.contract import Store
from tests.model.databases import Rows, Tables
from tests.model.invariants import violations
from tests.model.reference_operators import OperatedReference

Answer = Callable[[Any], Any]


class Subject(NamedTuple):
    """A store, and access to its rows."""

    name: str
    store: Store
    tables: Tables


class Refused(NamedTuple):
    """An answer that is an error."""

    kind: str
    says: str


class Disagreement(AssertionError):
    """A store did something other than the reference, or broke a promise."""


class Driver:
    """The reference and the stores under test, which all get the same steps."""

    def __init__(self, subjects: list[Subject], runner: asyncio.Runner) -> None:
        self.subjects = subjects
        self.reference = OperatedReference()
        self.owed: set[EndpointId] = set()  # lanes that are still to be woken
        self.now = NOW
        self.steps: list[str] = []
        self._runner = runner
        self._names: dict[bytes, str] = {}
        for subject in subjects:
            subject.tables.empty()
        self._rows: list[Rows] = [subject.tables.read() for subject in subjects]

    def name(self, id: Any, name: str) -> Any:
        """The name of an id in the printed steps."""
        self._names[id] = f"{name}{1 + sum(known.startswith(name) for known in self._names.values())}"
        return id

    def run(self, coroutine: Any) -> Any:
        try:
            return self._runner.run(coroutine)
        except (NotFound, WrongState, StoreRefused) as error:
            return Refused(type(error).__name__, str(error))

    def expect(self, work: Callable[[], Any]) -> Any:
        """The reference's answer."""
        try:
            return work()
        except (NotFound, WrongState) as error:
            return Refused(type(error).__name__, str(error))

    def do(self, verb: str, *values: Any, expected: Any, seen: Answer = lambda x: x, **named: Any) -> Any:
        """Do it on both stores; each answer, reduced by `seen` to what is promised, must be the expected one."""
        self.say(verb, *values, **named)
        for subject in self.subjects:
            answer = self.run(getattr(subject.store, verb)(*values, **named))
            self.compare(subject, seen(answer) if not isinstance(answer, Refused) else answer, expected)
        return expected

    def say(self, verb: str, *values: Any, **named: Any) -> None:
        told = [self.show(value) for value in values]
        told += [f"{name}={self.show(value)}" for name, value in named.items()]
        self.steps.append(f"{verb}({', '.join(told)})")

    def compare(self, subject: Subject, answer: Any, expected: Any) -> None:
        if answer != expected:
            self.fail(
                subject,
                f"answered {self.show(answer)}\n  the reference answers {self.show(expected)}",
            )

    def look(self) -> None:
        """Check after a step: rows and counts as in the reference, no promise broken."""
        expected = self.reference.rows()
        for n, subject in enumerate(self.subjects):
            before, rows = self._rows[n], subject.tables.read()
            self._rows[n] = rows
            wrong = violations(before, rows, owed=self.owed, now=self.now)
            for table, wanted in expected.items():
                if rows[table] != wanted:
                    wrong += [f"{table}: has {self.show(x)}" for x in rows[table] if x not in wanted]
                    wrong += [f"{table}: lacks {self.show(x)}" for x in wanted if x not in rows[table]]
                    wrong.append(f"{table} differs from the reference")
            if wrong:
                self.fail(subject, "\n  ".join(wrong))
            counts = self.run(subject.store.counts())
            if {state: counts.get(state, 0) for state in self.reference.counts()} != self.reference.counts():
                self.fail(subject, f"counts {counts}")

    def fail(self, subject: Subject, what: str) -> None:
        steps = "\n".join(f"  {n:3} {step}" for n, step in enumerate(self.steps, 1))
        raise Disagreement(f"{subject.name}: {what}\nafter these steps:\n{steps}")

    def show(self, value: Any) -> str:
        """A short form: ids by name, times as seconds since the beginning, only fields that say something."""
        match value:
            case bytes() if len(value) == 16:
                return self._names.get(value, self._names.get(value[:-1] + b"\0", value.hex()))
            case float() if NOW / 2 < value < NOW * 2:
                return f"t{value - NOW:+g}"
            case bytes():
                return f"{len(value)} bytes"
            case msgspec.Struct():
                fields = {f.name: f for f in msgspec.structs.fields(value)}
                told = [
                    f"{name}={self.show(getattr(value, name))}"
                    for name, field in fields.items()
                    if getattr(value, name) != field.default and name not in _DULL
                ]
                return f"{type(value).__name__}({', '.join(told)})"
            case dict():
                return "{" + ", ".join(f"{self.show(k)}: {self.show(v)}" for k, v in value.items()) + "}"
            case list() | tuple():
                return "[" + ", ".join(map(self.show, value)) + "]"
        return str(value)


_DULL = {
    "url",
    "secret",
    "events",
    "headers",
    "metadata",
    "retry_statuses",
    "circuit",
    "type",
    "duration",
    "version",
}
