"""Where data comes from: connectors read files and other systems as streams of Arrow record batches."""
