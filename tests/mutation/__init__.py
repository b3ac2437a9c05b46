"""Mutation testing: small planted changes of the code, and the tests that notice them (`make mutants`)."""
