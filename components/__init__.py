"""Where jobs come from: components, found and described without running them, and built into AppDefs."""
