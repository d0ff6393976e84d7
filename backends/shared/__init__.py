"""What several schedulers need, once each."""
