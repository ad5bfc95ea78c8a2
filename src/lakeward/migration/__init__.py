"""Moves what stands already behind the one door, and between the arms: above the pipelines, below the command line."""
