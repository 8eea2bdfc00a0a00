"""One predicate per claim of a ledger, and how they become verdicts."""
