#!/bin/sh
# Every check that a change must pass, the same here and in CI. QUICK=1 leaves out the slow tests and the second database.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=""

step() { # a name, then a command
    name=$1
    shift
    echo "== $name"
    if ! "$@"; then failed="$failed $name;"; fi
}

manage() {
    BENCHWARMERS_HOME="$folder" BENCHWARMERS_SECRET_KEYS=check-secret-0123456789abcdef .venv/bin/python -W error::DeprecationWarning:benchwarmers manage.py "$@"
}

step "form" .venv/bin/ruff format --check .
step "lint" .venv/bin/ruff check .
step "types" .venv/bin/mypy wire access catalog health panels suite benchwarmers client/src
step "settings and models" manage check --fail-level WARNING
step "migrations" manage makemigrations --check --dry-run
step "tests" scripts/test.sh
if [ -n "$failed" ]; then
    echo "Failed:$failed" >&2
    exit 1
fi
echo "Every check passed."
