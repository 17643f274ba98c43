#!/bin/sh
# Runs the tests: all of them on SQLite, then those that a database can fail on PostgreSQL with Redis. Arguments go to pytest.
# QUICK=1 leaves out the browser, the fault run, real models and the second database. BENCH_TEST_ONCE=1 leaves out the second database alone.
set -eu
cd "$(dirname "$0")/.."
LOCK=requirements-dev.lock . scripts/setup.sh
. scripts/system.sh

# Tests have a data folder and settings of their own.
unset BENCHWARMERS_HOME BENCHWARMERS_SECRET_KEYS BENCHWARMERS_ADMIN_TOKEN BENCH_HOST BENCH_PORT BENCH_PUBLIC_URL BENCH_ONLY 2>/dev/null || true
given_database=${DATABASE_URL:-} given_redis=${REDIS_URL:-}
unset DATABASE_URL REDIS_URL 2>/dev/null || true

closing=$(mktemp)
trap 'rm -f "$closing"' EXIT
failed=0

run() { # a title, then a command: shows its output, keeps its closing lines
    title=$1
    shift
    echo "== $title"
    out=$(mktemp)
    { "$@" 2>&1 && echo 0 >"$out.code" || echo $? >"$out.code"; } | tee "$out"
    code=$(cat "$out.code")
    if [ "$code" = 1 ] && [ "${BENCH_TEST_AGAIN:-1}" = 1 ]; then
        # Tests that start servers and kill them can lose against a busy machine. What fails again, alone and in one process, is broken.
        echo "== $title: what failed, once more"
        { "$@" --last-failed --last-failed-no-failures none -n 0 2>&1 && echo 0 >"$out.code" || echo $? >"$out.code"; } | tee -a "$out"
        code=$(cat "$out.code")
        [ "$code" != 0 ] || title="$title (some tests failed at first and passed alone: see above which)"
    fi
    { echo "== $title"; tail -n 3 "$out" | grep -v '^$' || true; } >>"$closing"
    rm -f "$out" "$out.code"
}

if [ "${QUICK:-}" = 1 ]; then
    set -- -m "not browser and not soak and not model" --ignore tests/test_soak_short.py "$@"
fi
# Most tests wait for servers, so a few processes more than cores pay. 0 runs them in one, as debuggers want it.
spread="-n ${BENCH_TEST_WORKERS:-3} --dist loadfile"
# shellcheck disable=SC2086
run "SQLite" .venv/bin/python -m pytest $spread "$@"
[ "$code" = 0 ] || failed=1

if [ "${QUICK:-}" != 1 ] && [ "${BENCH_TEST_ONCE:-}" != 1 ]; then
    # Formats, pure rules and pages are the same on both: --second-database leaves out what opens no database.
    if [ $# -gt 0 ]; then again="$*"; else again="tests/access tests/catalog tests/health tests/panels tests/suite tests/gateway tests/benchwarmers"; fi
    # shellcheck disable=SC2086
    run "PostgreSQL and Redis" env ${given_database:+DATABASE_URL="$given_database"} ${given_redis:+REDIS_URL="$given_redis"} \
        .venv/bin/python scripts/services.py .venv/bin/python -m pytest $spread --second-database -m "not browser" $again
    if [ "$code" = 75 ]; then
        echo "   PostgreSQL is not installed: skipped." | tee -a "$closing"
    elif [ "$code" != 0 ]; then
        failed=1
    fi
fi

echo
cat "$closing"
if [ -n "$MISSING" ]; then
    echo "Not tested here, for want of system packages:$MISSING"
fi
exit $failed
