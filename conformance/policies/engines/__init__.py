"""The rules of each engine, one module per engine: its policies, what it drops as late, and how it combines inputs."""
