#!/usr/bin/env python3
"""Runs the server's commands: `python manage.py serve`, `init`, `signin`, `roster load FILE` …"""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:  # a wrong setting is the deployer's to mend: the message is all that helps
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
