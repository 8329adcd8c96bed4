"""Computes a JSON Schema's weight: how often it can apply to one place of a payload.

The weight bounds the work of a check: places times weight. Ordinary schemas have a weight of a few dozen at most. A
schema that refers to itself twice doubles with every level of nesting, and one that refers to itself at the same place
never ends. References lead only to places in the same schema.
"""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

import msgspec

MOST_SUBSCHEMAS = 1_000
LEVELS = 64  # as deep as a payload may be nested

_SAME_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_PLACE = ("not", "if", "then", "else")
_UNSUPPORTED = ("$dynamicRef", "$recursiveRef")
_UNEVALUATED = ("unevaluatedProperties", "unevaluatedItems")
_HOLDERS = ("$defs", "definitions", "properties", "patternProperties", "dependentSchemas")
_LISTS = (*_SAME_PLACE_LISTS, "prefixItems")
_SINGLES = (
    *_SAME_PLACE,
    *_UNEVALUATED,
    "items",
    "contains",
    "additionalProperties",
    "propertyNames",
)


class Flaw(msgspec.Struct, frozen=True):
    """Why a schema is refused, and where in it."""

    pointer: str
    detail: str


class _Found(Exception):
    """Carries a flaw out of the recursion."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw.detail)
        self.flaw = flaw


def weight(schema: Mapping[str, Any]) -> int | Flaw:
    """The weight of an otherwise valid schema, or the flaw that keeps it from having one."""
    try:
        return _Weighing(schema).most()
    except _Found as found:
        return found.flaw


class _Weighing:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._known: dict[tuple[int, int], int] = {}
        self._open: set[tuple[int, int]] = set()
        self._anchors: dict[str, Any] = {}
        id = root.get("$id")
        self._base = id.partition("#")[0] if isinstance(id, str) else ""
        for count, (pointer, subschema) in enumerate(_subschemas(root)):
            if count == MOST_SUBSCHEMAS:
                raise _Found(Flaw("", f"A schema has at most {MOST_SUBSCHEMAS:,} subschemas."))
            self._look_at(subschema, pointer)

    def most(self) -> int:
        """The most applications to one place, over all levels of a payload."""
        return max(self._applied(self._root, level) for level in range(LEVELS + 1))

    def _look_at(self, schema: Mapping[str, Any], pointer: str) -> None:
        for name in _UNSUPPORTED:
            if name in schema:
                raise _Found(Flaw(f"{pointer}/{name}", f"{name} is not supported."))
        if pointer and "$id" in schema:
            raise _Found(Flaw(f"{pointer}/$id", "$id is supported at the top of a schema only."))
        if "$ref" in schema:
            self._target(schema["$ref"], f"{pointer}/$ref")
        for name in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(name), str):
                self._anchors[schema[name]] = schema

    def _target(self, reference: Any, pointer: str) -> Any:
        """The target of a reference; None when it is an anchor that was not reached yet."""
        base, _, fragment = str(reference).partition("#")
        if base and base != self._base:
            raise _Found(
                Flaw(
                    pointer,
                    "A $ref leads to a place in the same schema (#/…): nothing is fetched from elsewhere.",
                )
            )
        if fragment and not fragment.startswith("/"):
            return self._anchors.get(unquote(fragment))
        return _at(self._root, fragment, pointer)

    def _applied(self, schema: Any, level: int) -> int:
        """How many subschemas are applied to a place `level` levels below the one that `schema` is applied to."""
        if not isinstance(schema, Mapping):
            return 1 if level == 0 else 0
        key = (id(schema), level)
        if key in self._known:
            return self._known[key]
        if key in self._open:
            raise _Found(
                Flaw("", "The schema refers to itself at the same place: checking it would never end.")
            )
        self._open.add(key)
        count = 1 if level == 0 else self._below(schema, level - 1)
        for subschema in self._at_the_same_place(schema):
            count += self._applied(subschema, level)
        if any(name in schema for name in _UNEVALUATED):
            count *= 2  # what was evaluated has to be found first, by going through all of it
        self._open.discard(key)
        self._known[key] = count
        return count

    def _at_the_same_place(self, schema: Mapping[str, Any]) -> Iterator[Any]:
        for name in _SAME_PLACE_LISTS:
            yield from schema.get(name, ())
        for name in _SAME_PLACE:
            if name in schema:
                yield schema[name]
        yield from schema.get("dependentSchemas", {}).values()
        if "$ref" in schema:
            target = self._target(schema["$ref"], "")
            if target is not None:
                yield target

    def _below(self, schema: Mapping[str, Any], level: int) -> int:
        """The same, for what applies to the members or the items; a place of a payload is one or the other."""

        def each(*names: str) -> int:
            return sum(self._applied(schema[name], level) for name in names if name in schema)

        def one_of(subschemas: Any) -> int:
            return max((self._applied(subschema, level) for subschema in subschemas), default=0)

        patterns = sum(
            self._applied(subschema, level) for subschema in schema.get("patternProperties", {}).values()
        )
        members = (
            one_of(schema.get("properties", {}).values())
            + patterns
            + each("additionalProperties", "unevaluatedProperties", "propertyNames")
        )
        items = one_of(schema.get("prefixItems", ())) + each("items", "contains", "unevaluatedItems")
        return max(members, items)


def _subschemas(root: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every subschema with its pointer, where a schema is expected; the whole schema first."""
    waiting: list[tuple[str, Any]] = [("", root)]
    while waiting:
        pointer, schema = waiting.pop()
        if not isinstance(schema, Mapping):
            continue
        yield pointer, schema
        for name in _HOLDERS:
            held = schema.get(name)
            if isinstance(held, Mapping):
                waiting += [(f"{pointer}/{name}/{_step(key)}", value) for key, value in held.items()]
        for name in _LISTS:
            listed = schema.get(name)
            if isinstance(listed, list):
                waiting += [(f"{pointer}/{name}/{place}", value) for place, value in enumerate(listed)]
        for name in _SINGLES:
            if name in schema:
                waiting.append((f"{pointer}/{name}", schema[name]))


def _at(root: Any, path: str, pointer: str) -> Any:
    found = root
    for step in unquote(path).split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
            found = found[int(step)]
        else:
            raise _Found(Flaw(pointer, f"The schema has nothing at {path[:100]!r}."))
    if isinstance(found, Mapping) and found is not root and "$id" in found:
        raise _Found(Flaw(pointer, "$id is supported at the top of a schema only."))
    return found


def _step(key: object) -> str:
    return str(key)[:100].replace("~", "~0").replace("/", "~1")
