"""What a job is doing, and why not: read from its logs, its files and the answers of the Runner; no Textual."""
