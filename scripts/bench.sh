#!/bin/sh
# Measures this server beside LiteLLM's proxy. Options are those of `python -m bench.run`.
# `scripts/bench.sh million` times every list over a million ledger rows instead, in a database of its own: `python -m bench.million`.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
if [ "${1:-}" = million ]; then
    shift
    HOME_OF_ROWS=$(mktemp -d)
    trap 'rm -rf "$HOME_OF_ROWS"' EXIT INT TERM
    BENCHWARMERS_HOME=$HOME_OF_ROWS BENCHWARMERS_SECRET_KEYS=million-rows-of-figures DJANGO_SETTINGS_MODULE=benchwarmers.settings \
        .venv/bin/python -m bench.million "$@"
    exit
fi
exec .venv/bin/python -m bench.run "$@"
