"""The parts of table features: Arrow columns, roles, numbers, categories, and the schema that is learned."""
