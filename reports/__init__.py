"""Result files and everything drawn from them. Never runs anything."""
