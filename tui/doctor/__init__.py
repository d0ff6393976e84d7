"""What is set up here, what is wrong, and what to do."""
