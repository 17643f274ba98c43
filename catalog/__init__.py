"""What exists: endpoints, models, prices and facts, and the doors to the network."""
