"""Around one run: check it out, journal what the loop does, let subscribers hear it, end it."""
