"""The server's own settings, with a data folder and secrets of the test run's own, so that no test touches a user's.

Read by pytest before any conftest; what the environment already says wins.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

if not os.environ.get("BENCHWARMERS_HOME"):
    os.environ["BENCHWARMERS_HOME"] = RUN_FOLDER = tempfile.mkdtemp(prefix="benchwarmers-tests-")
    atexit.register(shutil.rmtree, RUN_FOLDER, ignore_errors=True)
os.environ.setdefault("BENCHWARMERS_SECRET_KEYS", "test-secret-0123456789abcdef")

# No test reads a public catalog: those that read one say where it is.
os.environ.setdefault("BENCH_CATALOG_URLS", "models_dev=,openrouter=,freellmapi=")

from django.conf.global_settings import PASSWORD_HASHERS as STRONG_HASHERS

from benchwarmers.settings import *  # noqa: F403

# Where nothing may be kept compiled, each of a server's eight processes compiles all of it anew at every start: half a second of each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A strong hash takes a twentieth of a second of every user that a test makes; the server's own is still known.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", *STRONG_HASHERS]

# Test processes share the data folder, and only one at a time may work on errands in one.
ERRANDS_LOCK = f"errands-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.lock"
