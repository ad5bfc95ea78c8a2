"""Moves what stands already: datasets between the arms, stage by stage, and code behind the one door."""
