#!/bin/sh
# Measures this server beside its peers: calls beside LiteLLM's proxy (`python -m bench.run`), then benchmark runs beside Inspect AI and
# lm-evaluation-harness (`python -m bench.evals`). A first word picks one thing; what follows are its own options:
#   calls     the gateway alone            evals   benchmark runs alone
#   million   every list over a million ledger rows, in a database of its own: `python -m bench.million`
#   suite     the suite's pages over a million tasks: `python -m bench.suite_million`
#   starter   two real small models through the starter pack, compared: `python -m bench.starter`
# Without one, --quick, --write and --no-litellm go to both (the last leaves out the other peers too).
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
case ${1:-} in
million | suite)
    case $1 in suite) what=bench.suite_million ;; *) what=bench.million ;; esac
    shift
    HOME_OF_ROWS=$(mktemp -d)
    trap 'rm -rf "$HOME_OF_ROWS"' EXIT INT TERM
    BENCHWARMERS_HOME=$HOME_OF_ROWS BENCHWARMERS_SECRET_KEYS=million-rows-of-figures DJANGO_SETTINGS_MODULE=benchwarmers.settings \
        .venv/bin/python -m "$what" "$@"
    exit
    ;;
calls)
    shift
    exec .venv/bin/python -m bench.run "$@"
    ;;
evals | starter)
    what=bench.$1
    shift
    exec .venv/bin/python -m "$what" "$@"
    ;;
esac
.venv/bin/python -m bench.run "$@"
evals=
for option in "$@"; do
    case $option in
    --quick) evals="$evals --samples 1000" ;;
    --write) evals="$evals --write" ;;
    --no-litellm) evals="$evals --alone" ;;
    esac
done
# shellcheck disable=SC2086
exec .venv/bin/python -m bench.evals $evals
