"""Pinned data by checksum: wheel members, MoleculeNet, a user's table; mirror first, then origin."""
