"""May we call, did it work, what did it cost: limits, the attempt, the outbox and the ledger, jobs."""
