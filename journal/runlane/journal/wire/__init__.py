"""What crosses a process boundary: jobs, messages, records, events, control. Pure types."""
