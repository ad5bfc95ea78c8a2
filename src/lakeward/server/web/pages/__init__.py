"""Pages, one file each: `router` has its routes, and `PLACE` says where it stands in the navigation, if it does."""
