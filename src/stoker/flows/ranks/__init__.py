"""One model over several boxes while it lives: the head plans and asks, each box starts its own part."""
