"""From bytes to lines: reading, keeping, merging, filtering and searching logs. Knows no scheduler and no screen."""
