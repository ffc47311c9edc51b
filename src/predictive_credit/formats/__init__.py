"""Forecasts and calls in the formats of others: bytes and records in, JSON-able values and bytes out."""
