"""What was launched and cancelled, by whom, and from which state of the code."""
