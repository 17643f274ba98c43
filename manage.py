#!/usr/bin/env python3
"""Runs the server's commands: `python manage.py serve`, `init`, `signin`, `roster load FILE` …"""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a wrong setting is the deployer's to mend: the message is all that helps
        sys.exit(f"error: {error}")
    except DatabaseError as error:
        if "no such table" in str(error) or ("relation" in str(error) and "does not exist" in str(error)):
            sys.exit("error: The database has no tables for this yet. `manage.py init` sets a data folder up, and so does starting the server.")
        raise


if __name__ == "__main__":
    main()
