"""The worked example of the table study, and the script that made it."""
