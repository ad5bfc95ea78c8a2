"""Registered models: what they are, what they take and give, and how rows are predicted with them."""
