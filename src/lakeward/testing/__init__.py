"""Real implementations of the ports for tests, ours and yours: an arm in memory, a clock that you move, crashes on demand."""
