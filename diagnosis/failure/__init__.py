"""Why a job failed."""
