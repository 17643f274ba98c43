"""Runs: launched, worked on by whoever holds their lease, recorded sample by sample, resumed after anything.

launch ─▶ a queued row, frozen ─▶ engine: claims it, asks many samples at once ─▶ lines in the outbox ─▶ samples, tasks, events, counters
                                      └── each sample: ask down the gateway's road ─▶ grade ─▶ one line
"""
