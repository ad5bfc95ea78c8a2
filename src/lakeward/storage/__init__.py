"""The only door to dataset rows: the facade asks the route and calls an arm; the write protocol makes it atomic."""
