"""The drill: real processes write to a real workspace, are killed, stopped and cut off, and a model says what must be.

model       what must be there, from what the ledger says is committed
worker      the processes that write; forked by one that has everything imported
writing     how they carry out a write
processes   starts, commands and kills them
matrix      one fault at every step of a write, on each arm and on both together
rounds      three writers at once, one of which is killed or stopped at a random instant
flips       one dataset is flipped under load, and whoever flips it is killed
roles       what the processes of that do
witness     judges them by their journals
report      the outcome as a table
"""

from __future__ import annotations
