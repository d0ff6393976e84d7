"""Where the bytes of a log come from: files of this machine that grow, and streams that go on where they broke off."""
