"""Named values over a job's steps: kept in bounded memory, read from the metric files that trainers write."""
