"""What a checkpoint of Structured Streaming says, read without Spark, and what awaits it on another version."""
