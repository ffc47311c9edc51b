"""From a prompt to a reply: one small file a provider; nothing here reads what the reply says."""
