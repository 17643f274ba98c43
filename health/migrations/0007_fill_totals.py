"""Filled the totals once; 0009 does, in the tables as they are now."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("health", "0006_totals")]
    operations = []
