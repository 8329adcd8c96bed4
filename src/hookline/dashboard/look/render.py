"""Renders templates.

Everything that comes from a person or a receiver is escaped: templates escape by themselves, and nothing here marks
such a text as safe.
"""

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hookline import rfc3339
from hookline.dashboard.look import figures, words
from hookline.dashboard.look.assets import Assets
from hookline.dashboard.look.hidden_marks import visible
from hookline.dashboard.visit.tokens import form_token


class Templates:
    """The templates, with the words of the pages as filters."""

    def __init__(self, assets: Assets) -> None:
        self._environment = Environment(
            loader=PackageLoader("hookline.dashboard"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters |= {
            "number": words.number,
            "percent": words.percent,
            "ms": words.milliseconds,
            "duration": words.length,
            "about": words.about,
            "moment": words.moment,
            "exact": words.exact,
            "short_id": words.short_id,
            "short_url": words.short_url,
            "host": words.host,
            "visible": visible,
        }
        self._environment.globals |= {
            "words": words,
            "figures": figures,
            "asset": assets.address,
            "counted": words.counted,
            "icon": icon,
            "status": status,
            "spark": figures.spark,
        }

    def render(self, template: str, data: Mapping[str, Any], *, times: "Moments", **more: Any) -> str:
        """The text of a page or a part of one."""
        visitor = more.get("visitor")
        return self._environment.get_template(template).render(
            **data,
            **more,
            now=times.now,
            ago=times.ago,
            until=times.until,
            since=times.since,
            csrf=lambda: _csrf(visitor),
        )


class Moments:
    """Writes moments: relative, with the exact one to hover over; or exact, if the visitor wants that."""

    def __init__(self, now: float, *, is_exact: bool) -> None:
        self.now = now
        self.is_exact = is_exact

    def ago(self, at: str | float | None) -> Markup:
        """`58 min ago`."""
        return self._relative(at, "ago", lambda moment: f"{words.about(self.now - moment)} ago")

    def until(self, at: str | float | None) -> Markup:
        """`in 16 min`; `now` if it is over."""

        def said(moment: float) -> str:
            return f"in {words.about(moment - self.now)}" if moment - self.now >= 1 else "now"

        return self._relative(at, "in", said)

    def since(self, at: str | float | None) -> Markup:
        """`02:14, 58 min`."""

        def said(moment: float) -> str:
            return f"{words.clock_time(moment, now=self.now)}, {words.about(self.now - moment)}"

        return self._relative(at, "", said)

    def _relative(self, at: str | float | None, kind: str, said: Any) -> Markup:
        moment = words.moment(at)
        if moment is None:
            return Markup('<span class="muted">{}</span>').format(words.NOTHING)
        exact = words.exact(moment)
        if self.is_exact:
            return Markup('<time datetime="{}">{}</time>').format(_stamp(moment), exact)
        ticking = Markup(' data-rel="{}"').format(kind) if kind else Markup("")
        return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(
            _stamp(moment), exact, ticking, said(moment)
        )


def icon(name: str) -> Markup:
    """A drawing that says nothing by itself: a word stands beside it."""
    return Markup('<svg class="i" aria-hidden="true"><use href="#icon-{}"/></svg>').format(name)


def status(look: words.Look, text: str | None = None) -> Markup:
    """A state: icon, word and colour."""
    return Markup('<span class="st {}">{}{}</span>').format(look.tone, icon(look.icon), text or look.word)


def _csrf(visitor: Any) -> Markup:
    if visitor is None:
        return Markup("")
    return Markup('<input type="hidden" name="token" value="{}">').format(form_token(visitor))


def _stamp(moment: float) -> str:

    return str(escape(rfc3339.show(float(int(moment)))))
