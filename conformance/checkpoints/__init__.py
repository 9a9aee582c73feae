"""What a checkpoint of Structured Streaming says, read without Spark, and what another version does with it."""
