"""The composition root: serving, probes, backups and the other commands."""
