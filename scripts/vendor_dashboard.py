"""Renews the files of others that the dashboard ships.

`vendor.toml` beside them names each package, its version and the SHA-256 of each file. For a newer version, change the
version and run this: it prints the hashes that differ and writes nothing. Read what changed, put the hashes into the
table, and run it again.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

VENDOR = Path(__file__).parents[1] / "src/hookline/dashboard/static/vendor"
TABLE = VENDOR / "vendor.toml"


def main() -> int:
    files: dict[str, bytes] = {}
    differing: list[str] = []
    for package in tomllib.loads(TABLE.read_text())["packages"]:
        wanted = {file["from"]: file for file in package["files"]}
        for source, content in packed(f"{package['name']}@{package['version']}", list(wanted)).items():
            file, found = wanted[source], hashlib.sha256(content).hexdigest()
            files[file["path"]] = content
            if found != file["sha256"]:
                differing.append(f"{file['path']}: the table has {file['sha256']}, the package has {found}")
    if differing:
        print(*differing, "Nothing was written.", sep="\n", file=sys.stderr)
        return 1
    for path, content in files.items():
        (VENDOR / path).parent.mkdir(exist_ok=True)
        (VENDOR / path).write_bytes(content)
    return 0


def packed(package: str, paths: list[str]) -> dict[str, bytes]:
    """The content of these files of an npm package."""
    npm = shutil.which("npm")
    if npm is None:
        sys.exit("npm is needed to fetch the packages.")
    with tempfile.TemporaryDirectory() as folder:
        command = [npm, "pack", "--silent", "--pack-destination", folder, package]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        [archive] = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            return {path: _member(tar, f"package/{path}") for path in paths}


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    file = tar.extractfile(name)
    if file is None:
        raise ValueError(f"{name} is not a file")
    return file.read()


if __name__ == "__main__":
    sys.exit(main())
