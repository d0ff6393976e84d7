"""Telling people who are away how their jobs are: by a command, a webhook, mail or the terminal."""
