"""Sessions that come from another system, or go to one. Pure: bytes in, records out, and back."""
