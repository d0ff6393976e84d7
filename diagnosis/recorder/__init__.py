"""PyTorch's flight recorder: reading its dumps, and which rank holds up the others by them."""
