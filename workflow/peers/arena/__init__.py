"""Rivals of the learners from aggregates: mechanisms that read records and release a model, under one guarantee.

`config/experiments/arena.yaml` compares them. Packages that a rival needs come with `make peers`; without them its runs
are `unavailable`.
"""
