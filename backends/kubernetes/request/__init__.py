"""An AppDef as the request for a Volcano job, and such a job as an AppDef."""
