from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acceptance.loads.miscompare import WrongElement
from acceptance.loads.mismatch import LISTED, ElementBits, describe_elements


def test_one_bit_of_one_element() -> None:
    found = describe_elements(
        [ElementBits(8195, 0x3F80, 0x3F88)], 8195, columns=8192, width=2, base=1 << 20
    )
    assert found == {
        "stride": None,
        "span": (8195, 8195),
        "xor_or": "0008",
        "xor_and": "0008",
        "bits": {3: 1},
        "first": (
            WrongElement(
                index=(1, 3),
                address=(1 << 20) + 16390,
                expected="3f80",
                got="3f88",
                xor="0008",
            ),
        ),
    }


def test_every_seventeenth_element() -> None:
    wrong = [ElementBits(17 * n, n, n + 1) for n in range(100)]
    found = describe_elements(wrong, 17 * 5000, columns=64, width=4, base=0)
    assert (found["stride"], found["span"]) == (17, (0, 85000))
    assert len(found["first"]) == LISTED
    assert found["bits"][0] == 100
    assert found["xor_and"] == "00000001"


def test_a_distance_counts_where_half_of_the_neighbours_have_it() -> None:
    def stride(*elements: int) -> int | None:
        found: int | None = describe_elements(
            [ElementBits(n, 0, 1) for n in elements], elements[-1], columns=9, width=8, base=0
        )["stride"]
        return found

    assert stride(0, 5, 10, 11) == 5
    assert stride(0, 5, 11, 18) is None
    assert stride(3, 4) == 1
    assert stride(3) is None


@given(
    st.lists(
        st.tuples(st.integers(0, 2**16 - 1), st.integers(1, 2**16 - 1)), min_size=1, max_size=50
    )
)
def test_bits_and_xors_are_those_of_the_elements(pairs: list[tuple[int, int]]) -> None:
    wrong = [ElementBits(place, value, value ^ xor) for place, (value, xor) in enumerate(pairs)]
    found = describe_elements(wrong, len(wrong) - 1, columns=7, width=2, base=0)
    either, every = int(found["xor_or"], 16), int(found["xor_and"], 16)
    assert all(xor & every == every for _, xor in pairs)
    assert all(xor & ~either == 0 for _, xor in pairs)
    assert set(found["bits"]) == {bit for bit in range(16) if either >> bit & 1}
    assert sum(found["bits"].values()) == sum(xor.bit_count() for _, xor in pairs)
