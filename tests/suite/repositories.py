"""A little git repository whose tests need nothing but Python: what is seeded from in tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

PRICES = '''"""Prices of a shop."""


def total(prices, discounts, floor):
    """Sums up what a basket costs."""
    result = 0
    spared = 0
    for index, price in enumerate(prices):
        share = discounts[index] if index < len(discounts) else 0
        cut = price * share // 100
        spared = spared + cut
        result = result + price - cut
    if result < floor and prices:
        result = floor
    return result, spared


def shelf(names, limit, prefix):
    """Names what lies on a shelf."""
    found = []
    seen = set()
    for name in names:
        clean = name.strip().lower()
        if clean in seen or not clean.startswith(prefix):
            continue
        seen.add(clean)
        found.append(clean)
    if len(found) > limit:
        found = found[:limit]
    return sorted(found)


def label(name: str, count: int, wide: bool) -> str:
    """Writes a label."""
    width = 12 if wide else 6
    short = name[:width]
    if count > 1 and wide:
        text = short + " x" + str(count)
    else:
        text = short
    rest = len(name) - len(short)
    return text + "+" * min(rest, 3)
'''

BROKEN = PRICES.replace("spared = spared + cut", "spared = cut")

TESTS = """import unittest

from shop.prices import shelf, total


class Total(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(total([], [], 0), (0, 0))

    def test_one(self):
        self.assertEqual(total([100], [10], 0), (90, 10))

    def test_two(self):
        self.assertEqual(total([100, 50], [10, 50], 0), (115, 35))

    def test_floor(self):
        self.assertEqual(total([1], [], 5), (5, 0))

    def test_at_the_floor(self):
        self.assertEqual(total([5], [], 5), (5, 0))

    def test_plain(self):
        self.assertEqual(total([3, 4], [], 0), (7, 0))


class Shelf(unittest.TestCase):
    def test_nothing(self):
        self.assertEqual(shelf([], 3, ""), [])

    def test_twice(self):
        self.assertEqual(shelf(["a", "A "], 3, "a"), ["a"])

    def test_limit(self):
        self.assertEqual(shelf(["b", "a", "c"], 2, ""), ["a", "b"])

    def test_prefix(self):
        self.assertEqual(shelf(["xa", "b"], 3, "x"), ["xa"])

    def test_order(self):
        self.assertEqual(shelf(["b", "a"], 3, ""), ["a", "b"])

    def test_exact(self):
        self.assertEqual(shelf(["d", "c"], 2, ""), ["c", "d"])
"""


def git(folder: Path, *arguments: str) -> str:
    line = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false", "-C", str(folder), *arguments]
    return subprocess.run(line, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, files: dict[str, str], message: str) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", message)
    return git(folder, "rev-parse", "HEAD").strip()


def shop(folder: Path) -> Path:
    """Makes the repository: a first state with a fault in it, then the fix with its tests."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    early = TESTS.replace("[100, 50], [10, 50], 0), (115, 35)", "[100], [50], 0), (50, 50)")
    commit(folder, {"shop/__init__.py": "", "shop/prices.py": BROKEN, "tests/__init__.py": "", "tests/test_prices.py": early}, "Open the shop")
    commit(folder, {"shop/prices.py": PRICES, "tests/test_prices.py": TESTS}, "Fix what was spared: only the last cut was told")
    return folder
