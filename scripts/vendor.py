"""Fetches the scripts and signs that the pages use from npm's registry, at the versions named here, into templates/static/vendor.

`python scripts/vendor.py` writes them; `--check` says whether what is there is the same. A new version: change it here, run, look at the pages, and at NOTICE.
"""

from __future__ import annotations

import io
import json
import re
import sys
import tarfile
import urllib.request
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "templates" / "static" / "vendor"
REGISTRY = "https://registry.npmjs.org"

# File here: package, version, file in the package.
SCRIPTS = {
    "htmx.js": ("htmx.org", "2.0.11", "dist/htmx.min.js"),
    "chart.js": ("chart.js", "4.6.1", "dist/chart.umd.min.js"),
    "marked.js": ("marked", "18.2.1", "lib/marked.umd.js"),
    "purify.js": ("dompurify", "3.5.0", "dist/purify.min.js"),
}
LICENCES = {"chart.js": "LICENSE.md"}
SIGNS = ("lucide-static", "1.62.0")
NAMES = """
message-square-text history gavel table-2 users compass list-plus gauge chart-column key-round plug settings shield menu sun moon plus x check copy download
trash-2 pencil play square rotate-cw search chevron-right chevron-down triangle-alert info circle-check circle-x arrow-up arrow-down external-link eye eye-off
paperclip image send sparkles star clock refresh-cw log-out user thumbs-up thumbs-down quote filter git-compare server link zap
""".split()  # noqa: SIM905
SYMBOL = '<symbol id="{}" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round">{}</symbol>'


def package(name: str, version: str) -> tarfile.TarFile:
    registry = (sys.argv[sys.argv.index("--registry") + 1] if "--registry" in sys.argv else REGISTRY).rstrip("/")
    with urllib.request.urlopen(f"{registry}/{name}/{version}", timeout=60) as answer:
        address = json.load(answer)["dist"]["tarball"]
    with urllib.request.urlopen(address, timeout=120) as answer:
        return tarfile.open(fileobj=io.BytesIO(answer.read()))


def text_of(archive: tarfile.TarFile, path: str) -> str:
    file = archive.extractfile(f"package/{path}")
    assert file is not None
    return file.read().decode()


def fetched() -> dict[str, str]:
    """Gives every file by its name here."""
    found, licences = {}, []
    for file, (name, version, path) in SCRIPTS.items():
        archive = package(name, version)
        licences.append(f"{file}: {name} {version}\n\n{text_of(archive, LICENCES.get(name, 'LICENSE')).strip()}\n")
        text = text_of(archive, path)
        # A map is of no use to who only serves the file, and a browser's tools would ask for it.
        found[file] = "".join(line for line in text.splitlines(keepends=True) if "sourceMappingURL" not in line)
    archive = package(*SIGNS)
    licences.append(f"icons.svg: {' '.join(SIGNS)}\n\n{text_of(archive, 'LICENSE').strip()}\n")
    symbols = []
    for name in NAMES:
        drawing = re.search(r"<svg[^>]*>(.*)</svg>", text_of(archive, f"icons/{name}.svg"), re.S)
        assert drawing, name
        symbols.append(SYMBOL.format(name, re.sub(r"\s+", " ", drawing[1]).strip().replace(" />", "/>")))
    found["icons.svg"] = "\n".join(['<svg xmlns="http://www.w3.org/2000/svg">', *symbols, "</svg>"]) + "\n"
    found["LICENCES.txt"] = f"\n{'-' * 80}\n\n".join(licences)
    return found


def main() -> None:
    files = fetched()
    if "--check" in sys.argv:
        different = [name for name, text in files.items() if (FOLDER / name).read_text(encoding="utf-8") != text]
        sys.exit(f"Not as npm has them: {', '.join(different)}" if different else 0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
