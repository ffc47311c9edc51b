"""From a reply to a forecast; and priors, forecasters that need no model."""
