"""The control plane: the Postgres that coordinates everything: the tree of names, the ledger, leases and routes."""
