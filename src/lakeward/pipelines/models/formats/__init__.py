"""The formats of models, one file each. A file is taken by the format that recognises its content, or refused."""
