"""Who writes explanations, from public state alone, and who reads them into cards, from their text alone."""
