"""What containers need and no daemon is needed for."""
