"""Traces of OpenTelemetry and events of OpenLineage, where settings ask for them; else none of it is even imported."""
