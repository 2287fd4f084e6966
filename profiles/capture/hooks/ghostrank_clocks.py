"""Clocks of ghostrank_hooks: moments of a module on the CPU or on a GPU, in nanoseconds of CLOCK_MONOTONIC.

On a GPU a moment is a CUDA event on the current stream: the time at which the device gets there, not that of the
launch.
"""

import time

import torch

now = time.monotonic_ns


class HostClock:
    """Moments of a module on the CPU: nanoseconds of the host's clock."""

    timer = "host"
    moment = staticmethod(now)
    nanos = None  # moments are nanoseconds already
    name = ""

    def wait(self):
        pass

    def settle(self):
        pass


class DeviceClock:
    """Moments of a module on a GPU: events, which get their times later.

    elapsed_time() has single precision, so events are counted from the last one that was put beside the host's clock,
    while the device was idle.

    A moment costs the host's time, so events are used again once they are read, and a stream is known by its handle:
    making either anew takes longer than to record the event.
    """

    timer = "cuda events"

    def __init__(self, device):
        self.device = device
        self.name = torch.cuda.get_device_name(device)
        self.streams = {}  # by handle
        self.free, self.read = [], set()  # events
        self.settle()

    def stream(self):
        """The current one, of this thread."""
        handle = torch._C._cuda_getCurrentRawStream(self.device.index)
        try:
            return self.streams[handle]
        except KeyError:
            return self.streams.setdefault(handle, torch.cuda.current_stream(self.device))

    def moment(self):
        try:
            event = self.free.pop()
        except IndexError:
            event = torch.cuda.Event(enable_timing=True)
        event.record(self.stream())
        return event

    def wait(self):
        torch.cuda.synchronize(self.device)

    def settle(self):
        """Counts from here on. Events that were read before may be recorded again."""
        self.wait()
        self.free.extend(self.read)
        self.read.clear()
        before = now()
        self.origin = self.moment()
        self.origin.synchronize()
        self.at = (before + now()) // 2

    def nanos(self, event):
        """A moment after `settle`, once the device has got there."""
        self.read.add(event)
        return self.at + round(1e6 * self.origin.elapsed_time(event))
