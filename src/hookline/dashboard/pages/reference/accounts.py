"""Shows the accounts, and where each is told of trouble."""

from collections.abc import Mapping, Sequence
from typing import Any

from hookline.api.problem import Refused
from hookline.app import Hookline
from hookline.dashboard.addresses import address, part
from hookline.dashboard.page import Answer, Asked, GoTo, PageRoute, Shown
from hookline.errors import Invalid

CHANNELS = {"email": "mail", "webhook": "webhook", "slack": "Slack"}
_AT_ONCE = 100
_ONE = "/v1/accounts/{account}"


class AccountPages:
    """The list of accounts, and the pages of one; for operators."""

    def __init__(self, hookline: Hookline) -> None:
        self._known = hookline.account_list
        self._has_portal = hasattr(hookline, "portal")
        self._public_url = getattr(hookline.settings, "public_url", None)

    def routes(self) -> Sequence[PageRoute]:
        """The pages."""
        one = "/accounts/{account}"
        return [
            PageRoute("GET", "/accounts", self.list_accounts, for_accounts=False),
            PageRoute("GET", one, self.show, for_accounts=False),
            PageRoute("GET", f"{one}/notify", self.ask_change, for_accounts=False),
            PageRoute("POST", f"{one}/notify", self.change, for_accounts=False),
            PageRoute("POST", f"{one}/test-alert", self.test, for_accounts=False),
            PageRoute("POST", f"{one}/portal-link", self.link, for_accounts=False),
        ]

    async def list_accounts(self, asked: Asked) -> Answer:
        """Which accounts are there?"""
        name, after = asked.query.get("name", "").strip(), asked.query.get("after", "")
        found = self._known.find(part=name, after=after, limit=_AT_ONCE + 1)
        shown = found[:_AT_ONCE]
        more = address("/accounts", name=name, after=shown[-1].id) if len(found) > len(shown) else ""
        return Shown(
            template="accounts.html",
            title="Accounts",
            data={
                "accounts": shown,
                "channels": CHANNELS,
                "name": name,
                "next": more,
                "first": address("/accounts", name=name) if after else "",
            },
            nav="accounts",
        )

    async def show(self, asked: Asked) -> Answer:
        """What is this account, and whom does it tell?"""
        return await self._page(asked)

    async def ask_change(self, asked: Asked) -> Answer:
        """Where is it told?"""
        found = await asked.api.get(_ONE, account=asked.parts["account"])
        given = {name: getattr(found.notify, name) or "" for name in CHANNELS}
        return _form(found.id, given, {})

    async def change(self, asked: Asked) -> Answer:
        """Set where it is told. A masked URL that nobody touched stays as it is."""
        account = asked.parts["account"]
        given = {name: asked.field(name) for name in CHANNELS}
        try:
            notify = {name: value or None for name, value in given.items()}
            await asked.api.put(_ONE, {"notify": notify}, account=account)
        except Invalid as error:
            field = error.pointer.rpartition("/")[2]
            field = field if field in CHANNELS else "email"
            return _form(account, given, {field: (error.pointer, error.detail)})
        return GoTo(f"/accounts/{part(account)}", "Saved. A test alert shows whether it arrives.")

    async def test(self, asked: Asked) -> Answer:
        """Send a test alert on each channel; this answer shows what came of it."""
        try:
            report = await asked.api.post(f"{_ONE}/test-alert", account=asked.parts["account"])
        except Refused as error:
            if error.code != "rate_limited":
                raise
            return await self._page(asked, refused=error.detail, status=429)
        return await self._page(asked, tested=report.results)

    async def link(self, asked: Asked) -> Answer:
        """Make a link to the account's portal; this answer alone shows it."""
        if not self._has_portal:
            raise Refused("not_found", "This server has no portal.")
        body: dict[str, Any] = {"may_act": bool(asked.field("may_act"))}
        try:
            body["visit_s"] = int(asked.field("visit_s") or 3_600)
            made = await asked.api.post(f"{_ONE}/portal-link", body, account=asked.parts["account"])
        except Invalid as error:
            return await self._page(asked, wrong_link=error.detail, status=422)
        except ValueError:
            return await self._page(asked, wrong_link="visit_s is a whole number.", status=422)
        # The browser says where it reached this server, also behind a proxy that speaks TLS for it.
        reached = asked.request.headers.get("origin") or str(asked.request.base_url).rstrip("/")
        base = self._public_url or reached
        return await self._page(asked, link=made, link_url=base + made.path)

    async def _page(self, asked: Asked, *, status: int = 200, **more: Any) -> Answer:
        found = await asked.api.get(_ONE, account=asked.parts["account"])
        told = [words for name, words in CHANNELS.items() if getattr(found.notify, name)]
        nothing: dict[str, Any] = dict.fromkeys(("refused", "tested", "link", "link_url", "wrong_link"), None)
        return Shown(
            template="account.html",
            title=_sentence(found, told),
            data={
                "account": found,
                "channels": CHANNELS,
                "is_told": bool(told),
                "has_portal": self._has_portal,
                **nothing,
                **more,
            },
            nav="accounts",
            status=status,
        )


def _sentence(found: Any, told: Sequence[str]) -> str:
    count = found.endpoints
    has = (
        f"{found.id} has {count:,} endpoint{'' if count == 1 else 's'}"
        if count
        else f"{found.id} has no endpoint"
    )
    if not told:
        return f"{has} and is told of trouble nowhere"
    by = told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return f"{has} and is told of trouble by {by}"


def _form(account: str, given: Mapping[str, str], problems: Mapping[str, tuple[str, str]]) -> Answer:
    return Shown(
        template="account_notify.html",
        title=f"Where {account} is told of trouble",
        data={"account": account, "given": given, "problems": problems},
        nav="accounts",
        status=422 if problems else 200,
    )
