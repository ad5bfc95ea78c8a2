"""Pipelines: the project folder, its specs, the plan, and the builds that materialise datasets."""
