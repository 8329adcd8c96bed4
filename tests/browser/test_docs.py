"""The page of the API's description shows requests that work when they are sent."""

from pathlib import Path

from playwright.sync_api import expect

from server_process import ServerProcess
from tests.browser.conftest import NewPage, Shots
from tests.browser.guard import Guard


def test_the_request_on_the_page_works_as_a_command_and_by_a_click(
    new_page: NewPage, shots: Shots, guard: Guard, tmp_path: Path
) -> None:
    database = f"sqlite:///{tmp_path}/hooks.db"
    with ServerProcess("--dev", "--database", database, cwd=tmp_path) as server:
        page = new_page(server.url)
        page.goto("/docs")
        operation = page.locator('[id="post-/v1/events"]')
        expect(operation).to_contain_text(f'curl -X POST "{server.url}/v1/events"')
        expect(operation).not_to_contain_text("HOOKLINE_API_KEY")  # none is needed in development
        expect(page.locator("rapi-doc")).not_to_contain_text("No API key applied")
        operation.get_by_role("button", name="Try").click()
        expect(operation).to_contain_text("Response Status: Accepted:202")
        shots(page, "docs")
    assert guard.take() == []
