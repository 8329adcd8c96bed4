"""The dashboard ships files of others as they were published, each with its licence."""

import hashlib
import tomllib
from importlib import resources
from pathlib import Path

VENDOR = Path(str(resources.files("hookline.dashboard"))) / "static/vendor"
PACKAGES = tomllib.loads((VENDOR / "vendor.toml").read_text())["packages"]
LICENCES = {"0BSD": "Zero-Clause BSD", "MIT": "The MIT License"}


def test_every_file_is_the_one_in_the_table():
    table = {file["path"]: file["sha256"] for package in PACKAGES for file in package["files"]}
    files = [path for path in VENDOR.rglob("*") if path.is_file() and path.name != "vendor.toml"]
    assert table == {
        str(path.relative_to(VENDOR)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }


def test_the_version_in_the_table_is_the_one_in_the_file():
    [htmx, uplot] = PACKAGES
    assert f'version:"{htmx["version"]}"' in (VENDOR / "htmx/htmx.min.js").read_text()
    assert f"(v{uplot['version']})" in (VENDOR / "uplot/uPlot.iife.min.js").read_text()


def test_every_package_brings_its_licence():
    for package in PACKAGES:
        [text] = [
            (VENDOR / file["path"]).read_text() for file in package["files"] if file["from"] == "LICENSE"
        ]
        assert text.startswith(LICENCES[package["licence"]])
