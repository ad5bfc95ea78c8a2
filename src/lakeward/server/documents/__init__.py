"""The documents of answers and requests, as OpenAPI describes them: a module for each noun."""
