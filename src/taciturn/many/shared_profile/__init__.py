"""Areas that share a profile: the model, the chain that learns it, and populations."""
