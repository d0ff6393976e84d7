"""Log lines as text that is safe to show: escape sequences, styles, widths, levels, tracebacks."""
