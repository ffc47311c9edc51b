"""Discovery certification: what an audit records, what it shows, and a verifier of the bundle."""
