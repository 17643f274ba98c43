"""Nothing is stored here yet."""
