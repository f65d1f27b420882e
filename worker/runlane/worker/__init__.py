"""Execute runs: claim, check out, loop over model and tools, journal, hand on."""
