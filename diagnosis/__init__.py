"""What a job is doing, and why not: evidence from its logs, files and processes, as sentences; no Textual."""
