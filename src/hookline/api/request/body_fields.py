"""Reads the fields of a call's body.

The body is a JSON object whose fields are known, each of the type in the call's Struct. A JSON pointer names what is
invalid.
"""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request

from hookline.api.publishing.envelope import read_object
from hookline.api.request.body import check_media, read_body
from hookline.errors import Invalid
from hookline.validate.names import check_known, pointer_step

BODY_LIMIT_BYTES = 1 << 20  # 64 headers of 8 KiB and 16 KiB of metadata, with some room

_Struct = TypeVar("_Struct", bound=msgspec.Struct)

_WHERE = re.compile(r"(.*?)(?: - at `(?:key in )?\$(.*)`)?", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}


async def read_fields(request: Request, kind: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields that a body gives, all of them known. If no field is required, the body may be missing."""
    is_patch = request.method == "PATCH"
    headers = request.scope["headers"]
    if is_patch or any(field.required for field in msgspec.structs.fields(kind)):
        check_media(headers, limit_bytes=BODY_LIMIT_BYTES, merge_patch=is_patch)
        body = await read_body(request.receive, limit_bytes=BODY_LIMIT_BYTES)
    else:
        body = await read_body(request.receive, limit_bytes=BODY_LIMIT_BYTES)
        if not body:
            return {}
        check_media(headers, limit_bytes=BODY_LIMIT_BYTES)
    fields = read_object(body)
    check_known(fields, kind.__struct_fields__)
    return fields


def converted(fields: Mapping[str, Any], kind: type[_Struct]) -> _Struct:
    """The fields as a value of the call's Struct."""
    for field in msgspec.structs.fields(kind):
        if field.required and field.name not in fields:
            raise Invalid(f"The field {field.name} is missing.", pointer=f"/{field.name}")
    try:
        return msgspec.convert(fields, kind)
    except msgspec.ValidationError as error:
        raise _named(str(error)) from None


def _named(message: str) -> Invalid:
    """msgspec's message in our words, and its path as a JSON pointer."""
    found = _WHERE.fullmatch(message)
    what, where = (found[1], found[2] or "") if found else (message, "")
    steps = [name or place for name, place in _STEP.findall(where)]
    pointer = "".join(f"/{pointer_step(step)}" for step in steps if step != "...")
    said = re.sub(r"`([a-z| ]+)`", lambda kinds: _spoken(kinds[1]), what).replace("got", "not")
    name = ".".join(step for step in steps if step != "...") or "The body"
    return Invalid(f"{name}: {said[:1].lower()}{said[1:200]}.", pointer=pointer)


def _spoken(kinds: str) -> str:
    return " or ".join(_WORDS.get(kind.strip(), kind.strip()) for kind in kinds.split("|"))
