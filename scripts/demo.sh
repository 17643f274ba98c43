#!/bin/sh
# The demo: see scripts/demo.py.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh run
exec .venv/bin/python scripts/demo.py "$@"
