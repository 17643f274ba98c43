"""Formats: what any chat API means, as frozen values, and each wire format both ways. No Django, no settings, no I/O."""
