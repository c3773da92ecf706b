"""Copy the libraries of the page from ``node_modules`` into the package, with their licences and their hashes.

    npm ci --ignore-scripts && python vendor.py

``make ui`` does both. The page's own files need no build.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

HERE = Path(__file__).parent
VENDOR = HERE.parent / "kagent" / "worker" / "http" / "ui" / "vendor"
FILES = {
    "preact-htm.js": ("htm", "preact/standalone.module.js"),
    "uPlot.js": ("uplot", "dist/uPlot.esm.js"),
    "uPlot.min.css": ("uplot", "dist/uPlot.min.css"),
}
NOTES = {
    "htm": "preact-htm.js: htm",
    "preact": "preact-htm.js: Preact, which htm has in this file",
    "uplot": "uPlot.js, uPlot.min.css: uPlot",
}


def main() -> None:
    """Write everything under ``vendor/`` anew."""
    modules = HERE / "node_modules"
    listed = {}
    for name, (package, path) in FILES.items():
        body = (modules / package / path).read_bytes()
        (VENDOR / name).write_bytes(body)
        version = json.loads((modules / package / "package.json").read_text())["version"]
        digest = hashlib.sha256(body).hexdigest()
        listed[name] = {"package": package, "version": version, "path": path, "sha256": digest}
    (VENDOR / "vendored.json").write_text(json.dumps(listed, indent=2) + "\n")
    licences = [f"{note}\n\n{(modules / package / 'LICENSE').read_text()}" for package, note in NOTES.items()]
    (VENDOR / "LICENSES.txt").write_text(("\n" + "-" * 80 + "\n\n").join(licences))


if __name__ == "__main__":
    main()
