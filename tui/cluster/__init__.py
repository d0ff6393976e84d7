"""What of the backends is free."""
