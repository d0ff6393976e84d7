"""What all screens share: theme, glyphs, format, bars, panes, dialogs."""
