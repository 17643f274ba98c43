# Makes .venv with the exact packages of a lock file; does nothing where they are there. Sourced with LOCK naming it.
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
    sum=$(cksum "$LOCK" | cut -d' ' -f1,2)
    if [ -x .venv/bin/python ] && grep -qsxF "$LOCK $sum" .venv/installed; then return; fi
    # What the development lock installed holds all that serving needs.
    if [ "$LOCK" = requirements.lock ] && [ -x .venv/bin/python ] && grep -qsxF "requirements-dev.lock $(cksum requirements-dev.lock | cut -d' ' -f1,2)" .venv/installed; then return; fi
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then make_venv; fi
    echo "Installing the packages of $LOCK."
    .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r "$LOCK"
    echo "$LOCK $sum" >.venv/installed
}

# The commands of client/ beside the server, always as the checkout has it.
install_command() {
    for name in bench benchwarmers benchwright; do
        [ ! -x ".venv/bin/$name" ] || continue
        module=benchwarmers_client.main
        [ "$name" != benchwright ] || module=benchwright.cli.main
        printf '#!%s/.venv/bin/python\nimport sys\nsys.path.insert(0, "%s/client/src")\nfrom %s import main\nmain()\n' "$(pwd)" "$(pwd)" "$module" >".venv/bin/$name"
        chmod +x ".venv/bin/$name"
    done
}

install_lock
install_command
