"""Where SQL runs: engines turn sealed user SQL over Arrow streams into an Arrow stream."""
