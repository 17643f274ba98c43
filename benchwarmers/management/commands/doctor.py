"""`manage.py doctor`: looks for what is wrong with this deployment."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from benchwarmers import doctor

MARKS = {doctor.OK: "ok  ", doctor.INFO: "info", doctor.WARN: "WARN", doctor.FAIL: "FAIL"}


class Command(BaseCommand):
    help = "Looks at what a deployment can get wrong and says what to do. Changes nothing; exit code 1 where something fails."
    requires_system_checks = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="Print the findings as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        findings = list(doctor.examine())
        if options["json"]:
            self.stdout.write(json.dumps([asdict(f) for f in findings], indent=1, ensure_ascii=False))
        else:
            width = max(len(f.name) for f in findings)
            for found in findings:
                self.stdout.write(f"{MARKS[found.verdict]}  {found.name:<{width}}  {found.detail}")
                if found.hint and found.verdict != doctor.OK:
                    self.stdout.write(f"      {'':<{width}}  → {found.hint}")
        if any(f.verdict == doctor.FAIL for f in findings):
            sys.exit(1)
