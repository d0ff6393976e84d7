"""The Docker engine: its client, its images, and its streamed responses."""
