#!/bin/sh
# Measures this server beside LiteLLM's proxy. Options are those of `python -m bench.run`.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
exec .venv/bin/python -m bench.run "$@"
