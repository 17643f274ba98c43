"""Who sits, who answers: collections, seating, the panel, verdicts, records."""
