"""How data is shown to people."""
