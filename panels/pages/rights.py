"""What each scope lets somebody do, in words."""

from __future__ import annotations

BENCH = (
    ("ask", "Ask", "Send prompts to collections and models."),
    ("judge", "Judge", "Keep verdicts on answers."),
    ("read", "Read", "See the bench: models, collections, figures, usage. No prompts and no answers of others."),
    ("operate", "Operate", "Change models, collections, budgets and schedules, and read every prompt and answer."),
    ("admin", "Administer", "Everything, keys and sign-ins too. Give it to no program that does not need it."),
)
SUITE = (
    ("runs:read", "Read runs", "Runs that you may see, their tasks and events."),
    ("runs:write", "Launch runs", "Launch, stop, share and delete runs of yours. They spend."),
    ("artifacts:read", "Read files of runs", "Reports, logs and transcripts."),
    ("registry:read", "Read benchmarks", "Benchmarks, boards and comparisons."),
    ("registry:publish", "Write benchmarks", "Make and change benchmarks, rows and scorers, and publish runs."),
    ("billing:read", "See money", "What your team may spend, and what it spent."),
    ("billing:write", "Grant money", "Grants, caps and allowances."),
    ("settings:read", "Read settings", "What your team has set for its runs."),
    ("settings:write", "Change settings", "Change what your team has set for its runs."),
    ("secrets:read", "List secrets", "Not built yet."),
    ("secrets:write", "Change secrets", "Not built yet."),
    ("hooks:read", "List webhooks", "Not built yet."),
    ("hooks:write", "Change webhooks", "Not built yet."),
    ("host_policy:read", "Read the host policy", "Not built yet."),
    ("host_policy:write", "Change the host policy", "Not built yet."),
)
# What is ticked at first: enough to launch runs and read what came of them.
STARTER = ("runs:read", "runs:write", "artifacts:read", "billing:read", "registry:read")
