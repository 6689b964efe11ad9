"""Pretraining of encoders on unlabeled text; each task is one module in `tasks`.

The command line loads `config` and `tasks` for its help: this file loads nothing.
"""
