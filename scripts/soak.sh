#!/bin/sh
# The ten-minute fault run. Options are those of `python -m bench.soak`.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
exec .venv/bin/python -m bench.soak "$@"
