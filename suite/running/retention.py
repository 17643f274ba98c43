"""What goes in time: the texts and files of runs that a team keeps no longer, and answers that were kept for repeated requests.

Scores, sums, digests and events stay, so boards and comparisons are what they were; what can no longer be done is to grade such a run again.
"""

from __future__ import annotations

import base64
from datetime import datetime, timedelta

from django.db import transaction

from suite.models import Artifact, Blob, Idempotency, Regrade, Run, Sample, Task, TeamSetting
from suite.running import recording

AT_ONCE = 200
ENDED = (Run.Status.OK, Run.Status.FAILED, Run.Status.HALTED)
# What stands in the place of a sample's texts.
GONE = base64.b64decode(recording.packed({"output": "", "calls": [], "gone": True}))
REPEATS_KEPT = timedelta(hours=48)


def run(now: datetime) -> int:
    """Takes away what is due, for each team by its own setting; gives how many runs were emptied."""
    Idempotency.objects.filter(created_at__lt=now - REPEATS_KEPT).delete()
    count = 0
    for team, days in TeamSetting.objects.filter(name="retention_days").values_list("team", "value"):
        due = Run.objects.filter(team=team, status__in=ENDED, finished_at__lt=now - timedelta(days=int(days))).order_by("finished_at")
        for run_id in due.values_list("pk", flat=True).iterator(chunk_size=AT_ONCE):
            count += emptied(run_id)
    return count


def emptied(run_id: str) -> bool:
    """Takes one run's texts and files away; tells whether there were any."""
    samples = Sample.objects.filter(run_id=run_id).exclude(payload=GONE)
    blobs = set(Artifact.objects.filter(run_id=run_id).values_list("blob_id", flat=True))
    if not blobs and not samples.exists():
        return False
    with transaction.atomic():
        samples.update(payload=GONE)
        Regrade.objects.filter(rescoring__run_id=run_id).update(payload=GONE)
        Task.objects.filter(run_id=run_id).update(preview="", preview_cut=True)
        Artifact.objects.filter(run_id=run_id).delete()
        Blob.objects.filter(pk__in=blobs, artifact=None).delete()
    return True


def is_emptied(run_id: str) -> bool:
    return Sample.objects.filter(run_id=run_id, payload=GONE).exists()
