"""Real implementations of the ports for tests, ours and yours: an arm in memory, a moved clock, crashes on demand."""
