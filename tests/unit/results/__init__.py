"""Results files and the matrix drawn from them."""
