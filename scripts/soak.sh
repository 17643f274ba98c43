#!/bin/sh
# The ten-minute fault run. Options are those of `python -m bench.soak`.
set -eu
cd "$(dirname "$0")/.."
. scripts/setup.sh dev
exec .venv/bin/python -m bench.soak "$@"
