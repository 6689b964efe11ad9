"""Training of sentence encoders.

The command line loads `config` and `objectives` for its help: this file loads nothing.
"""
