"""The Metrics screen, and what shows metrics on other screens."""
