"""A person sees which settings are in force, and where each comes from."""

import json

from server_process import run


def test_every_setting_is_shown_with_its_source_and_secrets_are_masked(tmp_path):
    (tmp_path / "hookline.toml").write_text(
        'port = 9000\nhost = "127.0.0.2"\nallow_networks = ["10.0.0.0/8"]\n'
    )
    env = {
        "HOOKLINE_PORT": "9001",
        "HOOKLINE_API_KEY": "hlk_canary",
        "HOOKLINE_DATABASE": "postgresql://me:canary@db/hooks",
        "HOOKLINE_EGRESS_PROXY": "http://canary:canary@proxy:3128",
    }
    result = run("config", "show", "--json", cwd=tmp_path, env=env)
    assert (result.returncode, result.stderr) == (0, "")
    assert "canary" not in result.stdout
    shown = json.loads(result.stdout)
    assert shown["port"] == {"value": 9001, "from": "HOOKLINE_PORT", "variable": "HOOKLINE_PORT"}
    assert (shown["host"]["value"], shown["host"]["from"]) == ("127.0.0.2", "hookline.toml: host")
    assert shown["allow_networks"]["value"] == ["10.0.0.0/8"]
    assert (shown["api_key"]["value"], shown["poll_s"]["from"]) == ("***", "default")
    assert shown["egress_proxy"]["value"] == "http://***@proxy:3128"
    assert shown["database"]["value"] == "postgresql://me:***@db/hooks"
    table = run("config", "show", cwd=tmp_path, env=env)
    assert "canary" not in table.stdout
    rows = [line.split() for line in table.stdout.splitlines()]
    assert rows[0] == ["SETTING", "VALUE", "FROM", "VARIABLE"]
    assert ["port", "9001", "HOOKLINE_PORT", "HOOKLINE_PORT"] in rows


def test_a_bad_setting_is_named(tmp_path):
    result = run("config", "show", cwd=tmp_path, env={"HOOKLINE_PORT": "http"})
    assert (result.returncode, result.stdout) == (2, "")
    assert "HOOKLINE_PORT" in result.stderr
