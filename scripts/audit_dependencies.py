"""Asks for known vulnerabilities of everything that is locked, with pip-audit in an environment of its own.

It exits with 1 if there are any. Where no feed of advisories can be reached it says so and exits with 0: that nothing was
asked is no reason to stop, and must not look like a good answer either.
"""

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
AUDITED = ROOT / "requirements-dev.lock"
TOOL = ROOT / "requirements-audit.lock"
FOLDER = ROOT / ".venv" / "audit"
NOT_ASKED = "NOT AUDITED: no feed of advisories could be reached."
UNREACHED = (
    "ConnectionError",
    "MaxRetryError",
    "NewConnectionError",
    "ConnectTimeout",
    "ProxyError",
    "HTTPError",
    "ServiceError",
)
PATIENCE_S = 20


def main() -> int:
    python = FOLDER / "bin" / "python"
    stamp = FOLDER / ".ready"
    if not stamp.exists() or stamp.read_text() != TOOL.read_text():
        venv.create(FOLDER, with_pip=True, clear=True)
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--require-hashes", "--requirement", str(TOOL)], check=True)
        stamp.write_text(TOOL.read_text())
    asked = [
        str(python),
        "-m",
        "pip_audit",
        "--requirement",
        str(AUDITED),
        "--disable-pip",
        "--require-hashes",
    ]
    asked += ["--format", "json", "--progress-spinner", "off", "--timeout", str(PATIENCE_S)]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    code, lines = verdict(done.returncode, done.stdout, done.stderr)
    print(*lines, sep="\n")
    return code


def verdict(status: int, output: str, errors: str) -> tuple[int, list[str]]:
    """The exit code and what to say, by how pip-audit ended."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        if status and any(each in errors for each in UNREACHED):
            return 0, [NOT_ASKED]
        return 1, ["pip-audit failed:", errors.strip()]
    found = [
        f"{each['name']} {each['version']}: {known['id']}, fixed in {', '.join(known['fix_versions']) or 'no version'}"
        for each in packages
        for known in each.get("vulns", ())
    ]
    skipped = [
        f"not asked: {each['name']}: {each['skip_reason']}" for each in packages if "skip_reason" in each
    ]
    if found:
        return 1, [*found, *skipped]
    if status or len(skipped) == len(packages):
        return (0, [NOT_ASKED]) if not status else (1, ["pip-audit failed:", errors.strip()])
    return 0, [*skipped, f"No known vulnerability in {len(packages) - len(skipped)} packages."]


if __name__ == "__main__":
    sys.exit(main())
