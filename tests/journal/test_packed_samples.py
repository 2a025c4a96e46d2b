from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acceptance.journal.packed_samples import Packer


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdef"), st.floats(allow_nan=False), max_size=6),
        max_size=8,
    )
)
def test_they_are_as_dicts_of_them_are(samples: list[dict[str, float]]) -> None:
    packer = Packer()
    for sample in samples:
        packed = packer.pack(sample)
        assert packed == sample
        assert sample == packed
        assert dict(packed.items()) == sample
        assert (len(packed), list(packed)) == (len(sample), list(sample))
        assert all(name in packed for name in sample)
        assert "z" not in packed
        assert packed.get("z") is None


def test_names_are_kept_once() -> None:
    packer = Packer()
    first, second = packer.pack({"a": 1.0, "b": 2.0}), packer.pack({"a": 3.0, "b": 4.0})
    assert first._places is second._places
    assert (first["b"], second["a"]) == (2.0, 3.0)
    assert repr(first) == "Readings({'a': 1.0, 'b': 2.0})"
