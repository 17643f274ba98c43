#!/bin/sh
# Measures this server beside LiteLLM's proxy. Options are those of `python -m bench.run`.
# `scripts/bench.sh million` times every list over a million ledger rows instead, in a database of its own: `python -m bench.million`;
# `scripts/bench.sh suite` the suite's pages over a million tasks: `python -m bench.suite_million`.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
if [ "${1:-}" = million ] || [ "${1:-}" = suite ]; then
    case $1 in suite) what=bench.suite_million ;; *) what=bench.million ;; esac
    shift
    HOME_OF_ROWS=$(mktemp -d)
    trap 'rm -rf "$HOME_OF_ROWS"' EXIT INT TERM
    BENCHWARMERS_HOME=$HOME_OF_ROWS BENCHWARMERS_SECRET_KEYS=million-rows-of-figures DJANGO_SETTINGS_MODULE=benchwarmers.settings \
        .venv/bin/python -m "$what" "$@"
    exit
fi
exec .venv/bin/python -m bench.run "$@"
