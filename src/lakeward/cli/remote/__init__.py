"""Commands against a server: sent by `client`, run there by `lakeward.cli.child`, with the same words on both sides."""
