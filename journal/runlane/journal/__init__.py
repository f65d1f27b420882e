"""What is true: records, events, jobs, the transitions between states, and who may write next."""
