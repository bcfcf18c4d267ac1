"""Facts of a table: entities, their attributes and values, looked up by names as people write them."""
