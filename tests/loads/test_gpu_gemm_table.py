from __future__ import annotations

from collections.abc import Callable

from card_of_tests import FakeCard

from acceptance.loads.gemm.contract import SIZES
from acceptance.loads.gemm.dtypes import DTYPES, Dtype
from acceptance.loads.gemm.worker import rows


def test_the_sizes_that_builders_publish() -> None:
    assert SIZES == (128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)


def test_each_size_is_warmed_up_and_timed() -> None:
    card = FakeCard()
    made: list[tuple[str, int]] = []

    def prepare(dtype: Dtype, size: int) -> Callable[[], None]:
        made.append((dtype.short, size))
        card.cost = lambda _: 2 * size**3 / 4e12
        return card.work

    found, left_out = rows(card, DTYPES["bf16"], (1024, 2048, 8192), prepare)
    assert [(n, round(rate, 6)) for n, rate in found] == [
        (1024.0, 4.0),
        (2048.0, 4.0),
        (8192.0, 4.0),
    ]
    assert made == [("bf16", 1024), ("bf16", 2048), ("bf16", 8192)]
    assert left_out == []
    # warm-up, estimate, and a twentieth of a second: 94 products of 0.5 ms, 12 of 4.3 ms; 8192
    # takes 0.27 s and is timed once
    assert card.done == (2 + 94) + (2 + 12) + 2


def test_what_does_not_fit_or_takes_long_is_said() -> None:
    card = FakeCard(free=1 << 30)
    card.cost = lambda _: 0.4
    found, left_out = rows(
        card, DTYPES["f64"], (512, 1024, 2048, 8192), lambda _dtype, _size: card.work
    )
    assert [n for n, _ in found] == [512.0]
    assert left_out == [
        "1024 would take about 6 s",
        "2048 would take about 51 s",
        "8192 needs 1.5 GiB and 1.0 GiB are free",
    ]
