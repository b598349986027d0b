"""Algorithms of collectives, written in Python."""
