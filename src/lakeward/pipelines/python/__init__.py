"""Nodes that are functions of the project: their code as it is stored, loaded, called and declared."""
