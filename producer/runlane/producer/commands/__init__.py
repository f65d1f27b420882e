"""The subcommands of `runlane` that ask for runs and look at them."""
