from __future__ import annotations

import ctypes
from typing import Any

import pytest
from fake_nvml import LOST, UNKNOWN, FakeNvml, Refusal
from worded import worded

from acceptance.observe import gpu_events
from acceptance.observe.gpu_events import XidListener

BOTH = {"0000:01:00.0": 0, "0000:02:00.0": 1}


def listening(answers: dict[Any, Any] | None = None) -> tuple[FakeNvml, XidListener]:
    nvml = FakeNvml(2, {"nvmlDeviceGetSupportedEventTypes": 0x1F, **(answers or {})})
    listener = XidListener(nvml)
    listener.listen(BOTH)
    return nvml, listener


def test_xids_and_nothing_else_are_heard() -> None:
    nvml, listener = listening()
    assert nvml.registered == [0, 1]
    nvml.tell_xid(1, 79)
    nvml.tell_xid(0, 1, kind=0x10)
    nvml.tell_xid(7, 31)
    assert listener.poll() == [(79, "0000:02:00.0"), (31, None)]
    assert listener.poll() == []
    assert listener.unsubscribed == {}


def test_a_storm_is_taken_in_pieces() -> None:
    nvml, listener = listening()
    for _ in range(105):
        nvml.tell_xid(0, 13)
    assert (len(listener.poll()), len(listener.poll())) == (100, 5)


def test_nobody_is_waited_for_longer_than_a_millisecond() -> None:
    nvml, listener = listening()
    listener.poll()
    assert nvml.waited_ms == [1]


def test_what_was_listened_with_is_given_back_once() -> None:
    nvml, listener = listening()
    assert nvml.freed == []
    listener.listen(BOTH)
    listener.close()
    listener.close()
    assert nvml.freed == ["set", "set"]


def test_a_lost_gpu_unsubscribes_nobody_and_its_last_word_keeps_its_name() -> None:
    nvml, listener = listening()
    nvml.events.append(Refusal(LOST))
    assert listener.poll() == []
    listener.listen({"0000:02:00.0": 1})
    assert nvml.registered == [1]
    nvml.tell_xid(0, 79)
    assert listener.poll() == [(79, "0000:01:00.0")]


@pytest.mark.parametrize("supported", [Refusal(3), 0x17])
def test_gpus_that_tell_no_xids(supported: object) -> None:
    nvml, listener = listening({"nvmlDeviceGetSupportedEventTypes": supported})
    assert nvml.registered == []
    assert listener.poll() == []
    assert worded(listener.unsubscribed) == dict.fromkeys(BOTH, "it offers none")


def test_one_gpu_that_will_not_tell_leaves_the_others_heard() -> None:
    nvml, listener = listening({("register", 0): Refusal(UNKNOWN, "Unknown Error")})
    assert listener.unsubscribed == {"0000:01:00.0": "Unknown Error"}
    nvml.tell_xid(1, 79)
    assert listener.poll() == [(79, "0000:02:00.0")]


def test_a_gpu_that_is_lost_by_then_is_told_by_its_readings() -> None:
    nvml, listener = listening({("register", 1): Refusal(LOST)})
    assert (listener.unsubscribed, nvml.registered) == ({}, [0])


def test_a_driver_that_stops_telling() -> None:
    nvml, listener = listening({"free": Refusal(UNKNOWN)})
    nvml.tell_xid(0, 79)
    nvml.events.append(Refusal(UNKNOWN, "Unknown Error"))
    assert listener.poll() == [(79, "0000:01:00.0")]
    assert listener.unsubscribed == dict.fromkeys(BOTH, "Unknown Error")
    listener.close()


def test_handles_of_the_binding_are_told_by_their_pointers() -> None:
    class Device(ctypes.Structure):
        pass

    def handle(address: int) -> object:
        return ctypes.cast(ctypes.c_void_p(address), ctypes.POINTER(Device))

    assert gpu_events._key(handle(4096)) == gpu_events._key(handle(4096))
    assert gpu_events._key(handle(4096)) != gpu_events._key(handle(8192))
