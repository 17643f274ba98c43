#!/bin/sh
# The demo: see scripts/demo.py.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements.lock . scripts/setup.sh
exec .venv/bin/python scripts/demo.py "$@"
