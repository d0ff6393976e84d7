"""One job: what it is, what becomes of it, and what can be done with it."""
