#!/bin/sh
# Writes requirements.lock and requirements-dev.lock anew: exact versions with checksums, for every Python and system that we run on.
set -eu
cd "$(dirname "$0")/.."
tool=$(mktemp -d)
trap 'rm -rf "$tool"' EXIT
"${PYTHON:-python3}" -m venv "$tool"
"$tool/bin/pip" install --quiet uv
uv="$tool/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate"
$uv "$@" requirements.txt -o requirements.lock
$uv "$@" -c requirements.lock requirements-dev.txt -o requirements-dev.lock
