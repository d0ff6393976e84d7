"""Notifications about jobs: by a command, a webhook, mail or the terminal."""
