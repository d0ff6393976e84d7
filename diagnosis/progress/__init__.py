"""Steps, rates and named values out of log lines of any trainer, and whether they still advance."""
