"""What a person chose: config.toml, its profiles, and the defaults of launches."""
