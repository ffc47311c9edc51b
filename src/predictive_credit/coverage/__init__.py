"""How many tasks will all agents together solve? Forecasts of coverage from a pilot of a few agents."""
