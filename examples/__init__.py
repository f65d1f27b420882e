"""One small program for each thing that runlane does; see README.md."""
