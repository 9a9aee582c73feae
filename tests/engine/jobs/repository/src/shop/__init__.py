"""The streaming jobs of a shop, as people write them."""
