"""Which planned experiment first? Forecasts of checked forecasters, ordered by expected gain per cost."""
