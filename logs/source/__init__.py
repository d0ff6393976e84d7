"""Where the bytes of a log come from: growing files on this machine, and streams that can be resumed."""
