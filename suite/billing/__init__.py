"""What a team may spend and what it spent: grants against the ledger's sums, the monthly cap, allowances, and lists of both. No payment is made anywhere."""
