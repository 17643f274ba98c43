# Makes .venv with the exact packages of a lock file; does nothing where they are there. Sourced: `. scripts/setup.sh run|dev`.
# PYTHON names the interpreter; without it the newest of 3.11 or later is taken.

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11; do
        if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    echo "Python 3.11 or later is needed; none was found. Install it, or name one: PYTHON=/path/to/python make …" >&2
    exit 1
}

make_venv() {
    python=$(find_python)
    echo "Making .venv with $("$python" --version)."
    rm -rf .venv
    if ! "$python" -m venv .venv 2>/dev/null; then
        # Debian and Ubuntu keep venv's installer in a package of its own.
        rm -rf .venv
        version=$("$python" -c 'import sys; print(f"{sys.version_info.major}.{sys.version_info.minor}")')
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            apt-get update -qq && apt-get install -qq -y "python$version-venv" >/dev/null
            "$python" -m venv .venv
        else
            echo "This Python cannot make environments. On Debian and Ubuntu: sudo apt-get install python$version-venv" >&2
            exit 1
        fi
    fi
}

install_lock() {
    lock=requirements.lock
    if [ "$1" = dev ]; then lock=requirements-dev.lock; fi
    sum=$(cksum "$lock" | cut -d' ' -f1,2)
    # What the development lock installed holds all that serving needs.
    if [ -x .venv/bin/python ] && { grep -qsx "$lock $sum" .venv/installed || { [ "$1" = run ] && grep -qs '^requirements-dev.lock' .venv/installed && [ .venv/installed -nt "$lock" ]; }; }; then
        return
    fi
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then make_venv; fi
    echo "Installing the packages of $lock."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$lock"
    echo "$lock $sum" >.venv/installed
}

install_lock "$1"
