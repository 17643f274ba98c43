"""The server's own settings, with a data folder and secrets of the test run's own, so that no test touches a user's.

Read by pytest before any conftest; what the environment already says wins.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

if not os.environ.get("BENCHWARMERS_HOME"):
    os.environ["BENCHWARMERS_HOME"] = RUN_FOLDER = tempfile.mkdtemp(prefix="benchwarmers-tests-")
    atexit.register(shutil.rmtree, RUN_FOLDER, ignore_errors=True)
os.environ.setdefault("BENCHWARMERS_SECRET_KEYS", "test-secret-0123456789abcdef")

# No test reads a public catalog: those that read one say where it is.
os.environ.setdefault("BENCH_CATALOG_URLS", "models_dev=,openrouter=,freellmapi=")

from benchwarmers.settings import *  # noqa: F403

# Test processes share the data folder, and only one at a time may work on errands in one.
ERRANDS_LOCK = f"errands-{os.environ.get('PYTEST_XDIST_WORKER', 'main')}.lock"
