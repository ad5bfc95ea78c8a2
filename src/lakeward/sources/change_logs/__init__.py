"""The logs of changes of sources, one module each, and what they are made of; `known_change_logs.py` finds them."""
