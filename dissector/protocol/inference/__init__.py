"""Infers the API and version of responses whose request is missing, from their bytes."""
