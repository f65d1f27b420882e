"""One module per provider protocol; none knows another."""
