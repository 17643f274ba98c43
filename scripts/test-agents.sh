#!/bin/sh
# Runs real coding agents (Claude Code, Codex, pi) on a collection in route mode. Fetches them from npm, once: about 900 MB in the user's cache folder.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
unset BENCHWARMERS_HOME BENCHWARMERS_SECRET_KEYS BENCHWARMERS_ADMIN_TOKEN BENCH_HOST BENCH_PORT BENCH_PUBLIC_URL BENCH_ONLY DATABASE_URL REDIS_URL 2>/dev/null || true
exec .venv/bin/python -m pytest -m agents -rs tests/agents "$@"
