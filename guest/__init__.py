"""Code that is not ours, in a process that is not ours: component files, run by the interpreter of their project."""
