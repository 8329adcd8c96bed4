"""Asks axe-core what a page does against WCAG 2.2, levels A and AA."""

from importlib import resources

from playwright.sync_api import Page

AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text()
LEVELS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
RUN = "levels => axe.run(document, {runOnly: {type: 'tag', values: levels}})"


def violations(page: Page) -> list[str]:
    """A line for each element at fault. JavaScript must be on."""
    page.evaluate(AXE)  # by the debugger, which the page's policy does not bind
    found = page.evaluate(RUN, LEVELS)["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {' '.join(map(str, node['target']))}"
        for rule in found
        for node in rule["nodes"]
    ]
