"""Errors and warnings that a caller may want to catch or to filter."""
