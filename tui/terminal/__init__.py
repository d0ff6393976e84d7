"""The terminal: its driver, output, title and clipboard, and the programs that it is left to."""
