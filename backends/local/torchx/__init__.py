"""Apps that TorchX itself launched on this machine."""
