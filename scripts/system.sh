# Sees to the system packages that some tests want; what cannot be had is named at the end. Sourced: sets MISSING.

MISSING=""

want() { # a command, its Debian package, what goes untested without it
    for name in $1; do
        if command -v "$name" >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/"$name" >/dev/null 2>&1; then return; fi
    done
    WANTED="$WANTED $2"
    MISSING="$MISSING
  $2: $3"
}

look() {
    WANTED="" MISSING=""
    want "chromium chromium-browser google-chrome" chromium "tests in a real browser"
    want "bwrap" bubblewrap "tests of the sandbox"
    want "redis-server" redis-server "tests with Redis"
    want "initdb" postgresql "tests on PostgreSQL"
}

look
if [ -n "$WANTED" ] && command -v apt-get >/dev/null 2>&1; then
    as_root=""
    if [ "$(id -u)" != 0 ]; then as_root="sudo -n"; fi
    if [ "$(id -u)" = 0 ] || [ "${CI:-}" = true ]; then
        echo "Installing system packages:$WANTED"
        # One that cannot be installed must not keep the others away.
        $as_root apt-get update -qq || true
        for package in $WANTED; do
            DEBIAN_FRONTEND=noninteractive $as_root apt-get install -qq -y --no-install-recommends "$package" >/dev/null || true
        done
        look
    else
        echo "Some tests need system packages: sudo apt-get install$WANTED"
    fi
fi
