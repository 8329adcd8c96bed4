"""Shows the settings of an endpoint, changes one at a time, and shows and rotates its secret."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.responses import RedirectResponse

from hookline.api.problem import NOTHING_HERE, Refused
from hookline.app import Hookline
from hookline.dashboard.look import words
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.dashboard.pages.endpoints.field_control import Control, Filled, filled_in, placed
from hookline.dashboard.pages.endpoints.field_forms import form_of
from hookline.dashboard.pages.endpoints.field_words import CHOICES, anchor_of, label_of, said, sections, waits
from hookline.errors import Invalid, WrongState
from hookline.rules.retry import PRESETS
from hookline.rules.rotation import DEFAULT_OVERLAP_S
from hookline.validate.endpoint_fields import BY_NAME, EndpointField

ONE = "/v1/endpoints/{endpoint_id}"
OVERLAPS = (
    ("3600", "1 h"),
    ("86400", "1 d"),
    ("604800", "7 d"),
    ("2592000", "30 d"),
    ("0", "not at all: the old one ends now"),
)


class EndpointSettingsPages:
    """The settings of one endpoint."""

    def __init__(self, hookline: Hookline) -> None:
        self._default_retry = PRESETS[hookline.settings.retry]

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/endpoints/{endpoint_id}"
        return [
            PageRoute("GET", f"{one}/settings", self.show),
            PageRoute("POST", f"{one}/settings", self.change),
            PageRoute("GET", f"{one}/secret/show", self.back_from_secret),
            PageRoute("POST", f"{one}/secret/show", self.show_secret),
            PageRoute("GET", f"{one}/secret/rotate", self.ask_rotation),
            PageRoute("POST", f"{one}/secret/rotate", self.rotate),
            PageRoute("GET", f"{one}/delete", self.ask_deletion),
            PageRoute("POST", f"{one}/delete", self.delete),
        ]

    async def show(self, asked: Asked) -> Answer:
        """All settings as text, and one of them as a form if it is to be changed."""
        endpoint = await self._endpoint(asked)
        field = BY_NAME.get(asked.query.get("change", ""))
        if field is None or not _can_change(field) or not asked.visitor.may_act:
            return self._page(asked, endpoint)
        return self._page(
            asked, endpoint, change=field, filled=form_of(field).filled(_value(endpoint, field))
        )

    async def change(self, asked: Asked) -> Answer:
        """Change one field, or show what its new value would lead to."""
        field = BY_NAME.get(asked.field("field"))
        if field is None or not _can_change(field):
            raise Refused("not_found", NOTHING_HERE)
        endpoint = await self._endpoint(asked)
        filled = filled_in(asked.form)
        try:
            value = form_of(field).read(filled, _value(endpoint, field))
            if asked.field("do") == "preview":
                if field.name == "retry" and value is not None:
                    field.check(value)
                return self._page(
                    asked, endpoint, change=field, filled=filled, preview=value, is_preview=True
                )
            await asked.api.patch(ONE, {field.name: value}, endpoint_id=endpoint.id)
        except Invalid as error:
            return self._page(asked, endpoint, change=field, filled=filled, problem=error)
        place = f"/endpoints/{endpoint.id}/settings#{anchor_of(field.name)}"
        return GoTo(place, f"{label_of(field.name)} saved. It counts from the next attempt on.")

    # --- its secret ---

    async def back_from_secret(self, asked: Asked) -> Answer:
        """The address of a page that only a form leads to."""
        endpoint = await self._endpoint(asked)
        return RedirectResponse(f"/endpoints/{endpoint.id}/settings#secret", 303)

    async def show_secret(self, asked: Asked) -> Answer:
        """The settings with the secrets that sign now."""
        endpoint = await self._endpoint(asked)
        secret = await asked.api.get(f"{ONE}/secret", endpoint_id=endpoint.id)
        return self._page(asked, endpoint, secret=secret)

    async def ask_rotation(self, asked: Asked) -> Answer:
        """What a rotation means, and how long both secrets sign."""
        return self._rotation(await self._endpoint(asked))

    async def rotate(self, asked: Asked) -> Answer:
        """Rotate the secret, and show the new one. The same form sent twice rotates once."""
        endpoint = await self._endpoint(asked)
        is_repeated = asked.field("was") != endpoint.updated_at
        overlap = asked.field("overlap_s") or str(DEFAULT_OVERLAP_S)
        order: dict[str, Any] = {"overlap_s": int(overlap) if overlap.isdecimal() else overlap}
        order |= {name: asked.field(name) for name in ("secret", "signature") if asked.field(name)}
        try:
            if is_repeated:
                secret = await asked.api.get(f"{ONE}/secret", endpoint_id=endpoint.id)
            else:
                secret = await asked.api.post(f"{ONE}/secret/rotate", order, endpoint_id=endpoint.id)
        except (Invalid, WrongState) as error:
            return self._rotation(endpoint, filled=asked, problem=error)
        endpoint = await self._endpoint(asked)
        return self._page(asked, endpoint, secret=secret, rotated="unchanged" if is_repeated else "rotated")

    def _rotation(
        self, endpoint: Any, *, filled: Asked | None = None, problem: Invalid | WrongState | None = None
    ) -> Shown:
        pointer = problem.pointer if isinstance(problem, Invalid) else ""
        return Shown(
            template="rotate_secret.html",
            title=f"Rotate the secret of {words.short_url(endpoint.url)}?",
            data={
                "endpoint": endpoint,
                "overlaps": OVERLAPS,
                "overlap": filled.field("overlap_s") if filled else str(DEFAULT_OVERLAP_S),
                "signatures": [("", "as it is"), *CHOICES["signature"].items()],
                "signature": filled.field("signature") if filled else "",
                "problem": str(problem) if problem else "",
                "pointer": pointer,
            },
            nav="endpoints",
            status=_status(problem),
        )

    # --- deleting it ---

    async def ask_deletion(self, asked: Asked) -> Answer:
        """What is cancelled with it."""
        endpoint = await self._endpoint(asked)
        return Shown(
            template="delete_endpoint.html",
            title=f"Delete {words.short_url(endpoint.url)}?",
            data={"endpoint": endpoint, "waiting": _waiting(endpoint)},
            nav="endpoints",
        )

    async def delete(self, asked: Asked) -> Answer:
        """Delete it."""
        endpoint = await self._endpoint(asked)
        await asked.api.delete(ONE, endpoint_id=endpoint.id)
        waiting = _waiting(endpoint)
        are = "is" if waiting == 1 else "are"
        cancelled = f" {words.counted(waiting, 'delivery', 'deliveries')} {are} cancelled." if waiting else ""
        return GoTo("/endpoints", f"{words.short_url(endpoint.url)[:200]} is deleted.{cancelled}")

    # --- the page ---

    async def _endpoint(self, asked: Asked) -> Any:
        return await asked.api.get(ONE, endpoint_id=asked.parts["endpoint_id"])

    def _page(
        self,
        asked: Asked,
        endpoint: Any,
        *,
        change: EndpointField | None = None,
        filled: Filled | None = None,
        problem: Invalid | None = None,
        preview: Any = None,
        is_preview: bool = False,
        secret: Any = None,
        rotated: str = "",
    ) -> Shown:
        controls: list[Control] = []
        if change is not None and filled is not None:
            controls = form_of(change).controls(filled)
        is_placed = problem is None or placed(controls, problem)
        faults = {each.field: each.detail for each in endpoint.problems}
        data = {
            "endpoint": endpoint,
            "sections": [
                (title, [_row(endpoint, BY_NAME[name], faults) for name in names if _is_shown(name, asked)])
                for title, names in sections()
            ],
            "change": change.name if change else "",
            "controls": controls,
            "problem": None if is_placed else problem,
            "is_preview": is_preview,
            "waits": waits(preview if is_preview else endpoint.retry, default=self._default_retry),
            "secret": secret,
            "rotated": rotated,
            "secret_fault": faults.get("secret", ""),
        }
        return Shown(
            template="endpoint_settings.html",
            title=f"Settings of {words.short_url(endpoint.url)}",
            data=data,
            nav="endpoints",
            status=_status(problem),
        )


def _row(endpoint: Any, field: EndpointField, faults: Mapping[str, str]) -> Mapping[str, Any]:
    return {
        "name": field.name,
        "anchor": anchor_of(field.name),
        "label": label_of(field.name),
        "said": said(field.name, _value(endpoint, field)),
        "fixed": field.fixed if not _can_change(field) else "",
        "fault": faults.get(field.name, ""),
    }


def _value(endpoint: Any, field: EndpointField) -> Any:
    return msgspec.to_builtins(getattr(endpoint, field.name, None))


def _can_change(field: EndpointField) -> bool:
    return field.in_patch and field.fixed is None


def _is_shown(name: str, asked: Asked) -> bool:
    return name != "account" or asked.visitor.account is None


def _waiting(endpoint: Any) -> int:
    counts = endpoint.counts
    return int(counts.pending + counts.awaiting_retry)


def _status(problem: Exception | None) -> int:
    if problem is None:
        return 200
    return 422 if isinstance(problem, Invalid) else 409
