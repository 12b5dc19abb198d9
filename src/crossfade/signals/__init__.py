"""Recordings in, windows and their features out."""
