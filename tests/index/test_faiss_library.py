"""The one place where faiss is loaded."""

import pytest

from sbertkit.index.faiss_library import faiss_threads, load_faiss


def test_a_query_has_one_thread_and_others_have_theirs_back() -> None:
    faiss = load_faiss()
    known = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(2)
    try:
        with faiss_threads(1):
            assert faiss.omp_get_max_threads() == 1
        with pytest.raises(KeyError), faiss_threads(1):
            raise KeyError
        with faiss_threads(3):
            assert faiss.omp_get_max_threads() == 2
        assert faiss.omp_get_max_threads() == 2
    finally:
        faiss.omp_set_num_threads(known)
