"""A scripted model behind real HTTP, for the demo and the tests."""
