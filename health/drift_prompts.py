"""The fixed questions that are asked nightly: what a model knows, reckons, and how it writes.

Never change one under its name: its baselines would be compared with answers to something else.
"""

from __future__ import annotations

from health.probe_calls import Question


def fixed(name: str, text: str, words_tokens: int) -> Question:
    return Question("drift", text, words_tokens, name, temperature=0.0, keeps_answer=True)


PROMPTS = (
    fixed("sum", "What is 4817 + 2596? Reply with the number alone.", 16),
    fixed("knows", "Name the five largest moons of the Solar System, largest first, separated by commas, nothing else.", 48),
    fixed("year", "In which year was the Treaty of Tordesillas signed? Reply with the year alone.", 16),
    fixed("letters", "How many times does the letter e stand in 'the seventh green elephant slept here'? Reply with the number alone.", 16),
    fixed("style", "Describe the taste of a ripe pear in one sentence.", 80),
    fixed("list", "Give three uses of a paper clip as a Markdown list.", 96),
    fixed("translate", "Translate into French: The ferry leaves at dawn unless the wind turns.", 48),
    fixed("marks", 'Repeat exactly, with nothing before or after: {"ключ": ["naïve—café", 0.1e-3, "汉字🙂"]}', 64),
)
