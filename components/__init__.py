"""Components: found and described without running them, and built into AppDefs."""
