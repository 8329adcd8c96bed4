"""Creates an endpoint, and shows its secret right after that."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hookline.app import Hookline
from hookline.dashboard.page import Answer, Asked, PageRoute, Shown
from hookline.dashboard.pages.endpoints.field_control import Control, Filled, filled_in, placed
from hookline.dashboard.pages.endpoints.field_forms import FieldForm, form_of
from hookline.dashboard.pages.endpoints.field_words import label_of, sections
from hookline.errors import Invalid
from hookline.model import Signature
from hookline.validate.endpoint_fields import BY_NAME, EndpointField

FIRST = ("url", "events", "description", "account")


class NewEndpointPages:
    """The form for a new endpoint."""

    def __init__(self, hookline: Hookline) -> None:
        self._hookline = hookline

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        return [
            PageRoute("GET", "/endpoints/new", self.show),
            PageRoute("POST", "/endpoints/new", self.create),
        ]

    async def show(self, asked: Asked) -> Answer:
        """The form; the query may fill in its first fields."""
        filled = {name: value for name in FIRST if (value := asked.query.get(name))}
        return self._form(asked, {name: [value] for name, value in filled.items()})

    async def create(self, asked: Asked) -> Answer:
        """Create it. The secret is in this answer and nowhere else: not in a URL, not in a cookie."""
        filled = filled_in(asked.form)
        try:
            body = _body(_forms(asked), filled)
            endpoint = await asked.api.post("/v1/endpoints", body)
        except Invalid as error:
            return self._form(asked, filled, error)
        public_key = None
        if endpoint.signature == Signature.V1A:
            secret = await asked.api.get("/v1/endpoints/{endpoint_id}/secret", endpoint_id=endpoint.id)
            public_key = secret.public_key
        data = {"endpoint": endpoint, "public_key": public_key}
        return Shown(template="created.html", title="The endpoint is created", data=data, nav="endpoints")

    def _form(self, asked: Asked, given: Filled, problem: Invalid | None = None) -> Shown:
        controls: dict[str, list[Control]] = {}
        for field, form in _forms(asked):
            defaults = form.filled(_default(field))
            controls[field.name] = form.controls({**defaults, **given})
        everything = [control for each in controls.values() for control in each]
        is_placed = problem is None or placed(everything, problem)
        folded = [
            (title, [(name, controls[name]) for name in names if name in controls and name not in FIRST])
            for title, names in (*sections(), ("Secret", ["secret"]))
        ]
        folded = [("More about it" if not n else title, members) for n, (title, members) in enumerate(folded)]
        folded = [(title, members) for title, members in folded if members]
        is_open = any(c.problem for _, members in folded for _, each in members for c in each)
        data = {
            "first": [(name, controls[name]) for name in FIRST if name in controls],
            "folded": folded,
            "is_open": is_open,
            "labels": {name: label_of(name) for name in controls},
            "problem": None if is_placed else problem,
        }
        status = 200 if problem is None else 422
        return Shown(
            template="new_endpoint.html", title="New endpoint", data=data, nav="endpoints", status=status
        )


def _forms(asked: Asked) -> list[tuple[EndpointField, FieldForm]]:
    """The fields that this visitor may fill in."""
    own = asked.visitor.account is not None
    return [(field, form_of(field)) for field in BY_NAME.values() if not (own and field.name == "account")]


def _body(forms: Sequence[tuple[EndpointField, FieldForm]], filled: Filled) -> Mapping[str, Any]:
    """What was filled in; what was left as it is by default is left out."""
    body: dict[str, Any] = {}
    for field, form in forms:
        defaults = form.filled(_default(field))
        here = {name: list(filled.get(name, defaults[name])) for name in defaults}
        value = form.read({**filled, **here}, None)
        if field.is_required or value != form.read(defaults, None):
            body[field.name] = value
    return body


def _default(field: EndpointField) -> Any:
    if field.is_required:
        return None
    value = field.default
    if field.show is not None and field.name != "secret":
        value = field.show(value)
    return msgspec.to_builtins(value)
