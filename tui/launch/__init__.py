"""From a component to a submitted job: picker, form, preview."""
