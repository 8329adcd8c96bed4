"""Turns the fields of an endpoint into the controls of a form, and what was filled in back into values for the API.

Nothing is checked here: what cannot be read as a number, say, is handed on as the text that it is, and the API says
what is wrong with it. `form_of` chooses a kind of form by the field's name, or by its schema: a field that is added to
`validate.endpoint_fields` appears by itself.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from hookline.dashboard.pages.endpoints.field_control import (
    SEPARATORS,
    WHOLE,
    Control,
    Filled,
    as_number,
    one,
)
from hookline.dashboard.pages.endpoints.field_words import CHOICES, FORM_LABELS, HELP, label_of
from hookline.dashboard.pages.endpoints.object_forms import CircuitForm, HeadersForm, RateForm, RetryForm
from hookline.errors import Invalid
from hookline.validate.endpoint_fields import EndpointField


class FieldForm(Protocol):
    """How a field is filled in."""

    def filled(self, value: Any) -> Filled:
        """The form as it shows a value of the API."""

    def read(self, filled: Filled, before: Any) -> Any:
        """What to give the API for it."""

    def controls(self, filled: Filled) -> list[Control]:
        """Its controls."""


class TextForm(msgspec.Struct):
    """A text; an empty one resets it, unless it must be there."""

    field: EndpointField
    kind: str = "text"

    def filled(self, value: Any) -> Filled:
        return {self.field.name: ["" if value is None else str(value)]}

    def read(self, filled: Filled, before: Any) -> Any:
        text = one(filled, self.field.name).replace("\r\n", "\n").strip()
        return text if text or self.field.is_required else None

    def controls(self, filled: Filled) -> list[Control]:
        return [_control(self.field, filled, kind=self.kind)]


class HiddenForm(TextForm):
    """A text that is given and never shown again, not even to who just gave it."""

    def filled(self, value: Any) -> Filled:
        return {}

    def controls(self, filled: Filled) -> list[Control]:
        return [_control(self.field, {}, kind=self.kind)]


class NumberForm(TextForm):
    """A number."""

    def read(self, filled: Filled, before: Any) -> Any:
        return as_number(one(filled, self.field.name))


class ChoiceForm(TextForm):
    """One of the words of its schema."""

    def controls(self, filled: Filled) -> list[Control]:
        said = CHOICES.get(self.field.name, {})
        options = [(word, said.get(word, word)) for word in self.field.schema["enum"]]
        return [_control(self.field, filled, kind="choice", options=options)]


class FlagForm(TextForm):
    """Yes or no."""

    def filled(self, value: Any) -> Filled:
        return {self.field.name: ["yes" if value else "no"]}

    def read(self, filled: Filled, before: Any) -> Any:
        return {"yes": True, "no": False}.get(one(filled, self.field.name))

    def controls(self, filled: Filled) -> list[Control]:
        return [_control(self.field, filled, kind="choice", options=[("yes", "yes"), ("no", "no")])]


class ListForm(TextForm):
    """Words between commas, spaces or lines; numbers among them are numbers."""

    def filled(self, value: Any) -> Filled:
        return {self.field.name: ["\n".join(str(each) for each in value or ())]}

    def read(self, filled: Filled, before: Any) -> Any:
        words = [word for word in SEPARATORS.split(one(filled, self.field.name)) if word]
        if self.field.name == "events":
            return words
        return [int(word) if WHOLE.fullmatch(word) else word for word in words]


class JsonForm(TextForm):
    """Any JSON value, for fields that no other form suits."""

    def filled(self, value: Any) -> Filled:
        text = "" if value is None else msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
        return {self.field.name: [text]}

    def read(self, filled: Filled, before: Any) -> Any:
        text = one(filled, self.field.name)
        if not text.strip():
            return None
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise Invalid(f"This is not JSON: {error}.", pointer=f"/{self.field.name}") from None
        is_patched = self.field.merge is not None and isinstance(before, dict) and isinstance(value, dict)
        return _patch(before, value) if is_patched else value


_BY_NAME: Mapping[str, FieldForm] = {
    "headers": HeadersForm(),
    "rate_limit": RateForm(),
    "circuit": CircuitForm(),
    "retry": RetryForm(),
}
_LISTS = frozenset({"retry_statuses"})
_HIDDEN = frozenset({"client_certificate"})
_AREAS = frozenset({"description", "filter"})


def form_of(field: EndpointField) -> FieldForm:
    """How a field is filled in."""
    schema = field.schema
    kind = schema.get("type")
    if field.name in _BY_NAME:
        return _BY_NAME[field.name]
    if field.name in _HIDDEN:
        return HiddenForm(field, "area")
    if "enum" in schema:
        return ChoiceForm(field)
    if kind == "string":
        return TextForm(field, "area" if field.name in _AREAS else "text")
    if kind in ("integer", "number"):
        return NumberForm(field, "number")
    if kind == "boolean":
        return FlagForm(field)
    if kind == "array" and (field.name in _LISTS or schema.get("items", {}).get("type") == "string"):
        return ListForm(field, "area")
    return JsonForm(field, "area")


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes the one object the other."""
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            value = _patch(old, value)
        patch[name] = value
    return patch


def _control(field: EndpointField, filled: Filled, **more: Any) -> Control:
    return Control(
        name=field.name,
        label=FORM_LABELS.get(field.name) or label_of(field.name),
        pointer=f"/{field.name}",
        value=one(filled, field.name),
        help=HELP.get(field.name, f"{field.text[:1].upper()}{field.text[1:]}."),
        **more,
    )
