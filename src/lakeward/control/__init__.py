"""The control plane: the Postgres that coordinates everything, with the tree of names, the ledger, leases and routes."""
