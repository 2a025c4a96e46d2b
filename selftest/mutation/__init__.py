"""Mutation of the product itself: each rule that decides is removed or inverted in turn, and the
tests must notice each.
"""
