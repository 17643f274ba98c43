#!/bin/sh
# Serves, from nothing: environment, data folder, database, secrets, first admin. Signals reach `serve` itself.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements.lock . scripts/setup.sh
.venv/bin/python manage.py init >/dev/null
exec .venv/bin/python manage.py serve "$@"
