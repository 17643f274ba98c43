"""Review work as a benchmark: find the faulty line, or say whether a claim about code is true.

repository   a git repository at one commit: its files, its history; which names the data folder's config/repos.json allows
functions    functions as they stand in a file: their lines, what they look like once names are left out
"""
