"""What sources are read through. A connector is one module with one `Connector`; discovery finds it by its `name`."""
