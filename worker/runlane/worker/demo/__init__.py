"""`runlane demo`: a whole deployment under faults, and a verdict on what it promised."""
