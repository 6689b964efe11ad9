"""Lexical search: words of texts, their postings in files, and BM25 over the whole index.

It knows texts, words and numbers of documents, never an index folder or vectors.
"""
