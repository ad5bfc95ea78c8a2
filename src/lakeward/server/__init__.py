"""The HTTP API: what other programs call. It asks the handles of an open workspace, and decides nothing itself."""
