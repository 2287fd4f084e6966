#!/usr/bin/env python3
"""Makes the captures beside it: frames that enter a switch at each port, and frames that must leave.

Each folder holds plan.yaml, inN.pcap (the frames that enter port N) and outN.pcap (those that must
leave there, in this order). This script restates SwitchML's rules without the C++ and the P4, as its
authors give them: bitmaps and a counter that counts down. Run it after changing a scenario:

    python3 tests/switch/captures/make.py

Every frame that enters has its own time; one that leaves has the time of the frame that caused it.
"""
import random
import shutil
import struct
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SWITCH_MAC = bytes([2, 0, 0, 0, 0xFF, 1])
SWITCH_IP = 0x0A0000FE
SPINE_MAC = bytes([2, 0, 0, 0, 0xFF, 9])
SPINE_IP = 0x0A0000F0
UDP_PORT = 0xBEE0
WORKER_PORT = 4000
SIZE_CODE = {32: 0, 64: 1, 256: 3}
SEED = 1


def worker_mac(w):
    return bytes([2, 0, 0, 0, 0, w])


def worker_ip(w):
    return 0x0A000001 + w


def checksum(header):
    total = sum(struct.unpack(">10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(source, target, slot, version, packet, exponents, values):
    """source, target: (MAC, IPv4 address, UDP port); values: int32, signed or unsigned."""
    payload = b"".join(struct.pack(">I", v & 0xFFFFFFFF) for v in values)
    udp_length = 8 + 8 + 2 + len(payload)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 20 + udp_length, 0, 0, 64, 17, 0, source[1], target[1])
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    udp = struct.pack(">HHHH", source[2], target[2], udp_length, 0)
    head = struct.pack(">BBIH", 0x10 | SIZE_CODE[len(values)], 0, packet, version << 15 | slot)
    return target[0] + source[0] + b"\x08\x00" + ip + udp + head + struct.pack(">bb", *exponents) + payload


@dataclass
class Chunk:
    """A chunk that worker `worker` sends; `port`: where it enters, by default the worker's."""

    worker: int
    slot: int
    version: int
    packet: int
    values: list
    exponents: tuple = (0, 0)
    thread: int = 0
    port: int | None = None

    def entry(self):
        return self.worker if self.port is None else self.port

    def frame(self):
        source = (worker_mac(self.worker), worker_ip(self.worker), WORKER_PORT + self.thread)
        target = (SWITCH_MAC, SWITCH_IP, UDP_PORT + self.thread)
        return frame(source, target, self.slot, self.version, self.packet, self.exponents, self.values)


@dataclass
class Raw:
    """Any other frame."""

    port: int
    bytes: bytes


@dataclass
class Job:
    """Worker w is at port w."""

    name: str
    workers: list
    elements: int
    first_slot: int = 0
    slots: int = 4
    state: dict = field(default_factory=dict)

    def receive(self, chunk):
        """Returns the workers that get a result, and the result."""
        n = len(self.workers)
        bit = 1 << self.workers.index(chunk.worker)
        s = self.state.setdefault(
            chunk.slot, {"bitmap": [0, 0], "count": [0, 0], "value": [None, None], "exponents": [None, None]}
        )
        v = chunk.version
        before = s["bitmap"][v]
        s["bitmap"][v] |= bit
        s["bitmap"][1 - v] &= ~bit
        repeated = before & bit
        if before == 0:
            s["value"][v] = list(chunk.values)
            s["exponents"][v] = chunk.exponents
        elif not repeated:
            s["value"][v] = [(a + b) & 0xFFFFFFFF for a, b in zip(s["value"][v], chunk.values)]
            s["exponents"][v] = tuple(map(max, s["exponents"][v], chunk.exponents))
        flag = s["count"][v]
        if not repeated:
            s["count"][v] = n - 1 if flag == 0 else flag - 1
        if n == 1:
            flag = 0 if repeated else 1
        if not repeated and flag == 1:
            receivers = self.workers
        elif repeated and flag == 0:
            receivers = [chunk.worker]
        else:
            receivers = []
        return receivers, s["exponents"][v], s["value"][v]


class Dice:
    """Loss on purpose: xorshift, as switch/plan.h describes it."""

    def __init__(self, probability, port, egress):
        self.probability = round(probability * 65536)
        self.state = (SEED * 0x9E3779B9 + 2 * port + egress + 1) & 0xFFFFFFFF or 1

    def lost(self):
        if self.probability == 0:
            return False
        self.state ^= self.state << 13 & 0xFFFFFFFF
        self.state ^= self.state >> 17
        self.state ^= self.state << 5 & 0xFFFFFFFF
        return self.state & 0xFFFF < self.probability


class Capture:
    def __init__(self, name, ports, jobs, loss=(), forward=False):
        self.name, self.ports, self.jobs, self.loss, self.forward = name, ports, jobs, dict(loss), forward
        self.enters = [[] for _ in range(ports)]
        self.leaves = [[] for _ in range(ports)]
        self.time_ns = 1_000_000_000
        self.ingress = [Dice(self.loss.get(p, (0, 0))[0], p, 0) for p in range(ports)]
        self.egress = [Dice(self.loss.get(p, (0, 0))[1], p, 1) for p in range(ports)]

    def raw(self, port, data, out=()):
        """Adds a frame that is not summed; it leaves at the ports `out`."""
        self.time_ns += 1_000_000
        self.enters[port].append((self.time_ns, data))
        for p in out:
            self.leaves[p].append((self.time_ns, data))

    def chunk(self, chunk, spoil=lambda frame: frame):
        """Adds a chunk; returns the workers that get a result."""
        port = chunk.entry()
        self.raw(port, spoil(chunk.frame()))
        if self.ingress[port].lost():
            return []
        for job in self.jobs:
            if (
                chunk.worker in job.workers
                and port == chunk.worker
                and job.first_slot <= chunk.slot < job.first_slot + job.slots
            ):
                receivers, exponents, values = job.receive(chunk)
                return [w for w in receivers if self.result(w, chunk, exponents, values)]
        return []

    def result(self, worker, chunk, exponents, values):
        if self.egress[worker].lost():
            return False
        source = (SWITCH_MAC, SWITCH_IP, UDP_PORT + chunk.thread)
        target = (worker_mac(worker), worker_ip(worker), WORKER_PORT + chunk.thread)
        data = frame(source, target, chunk.slot, chunk.version, chunk.packet, exponents, values)
        self.leaves[worker].append((self.time_ns, data))
        return True

    def write(self):
        folder = HERE / self.name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for p in range(self.ports):
            write_pcap(folder / f"in{p}.pcap", self.enters[p])
            write_pcap(folder / f"out{p}.pcap", self.leaves[p])
        (folder / "plan.yaml").write_text(self.plan())

    def plan(self):
        text = "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:01\nip: 10.0.0.254\n"
        if self.forward:
            text += "forward:\n" + "".join(
                f"  - {{mac: {worker_mac(p).hex(':')}, port: {p}}}\n" for p in range(self.ports)
            )
        if self.loss:
            text += "loss:\n" + "".join(
                f"  - {{port: {p}, ingress: {i}, egress: {e}}}\n" for p, (i, e) in self.loss.items()
            )
            text += f"seed: {SEED}\n"
        text += "jobs:\n"
        for job in self.jobs:
            text += (
                f"  - name: {job.name}\n    elements: {job.elements}\n    first_slot: {job.first_slot}\n"
                f"    slots: {job.slots}\n    workers:\n"
            )
            for w in job.workers:
                text += f"      - {{port: {w}, mac: {worker_mac(w).hex(':')}, ip: 10.0.0.{w + 1}}}\n"
        return text


class Leaf(Capture):
    """A guarded leaf of two workers, with the switch above at port 2: a slot's set keeps the number of
    its round, the sum, and the answer from above in its place."""

    UPLINK = 2

    def __init__(self, name, job):
        super().__init__(name, 3, [job])
        self.rounds = {}

    def plan(self):
        above = f"{{port: {self.UPLINK}, mac: {SPINE_MAC.hex(':')}, ip: 10.0.0.240}}"
        return super().plan() + f"    guarded: true\n    uplink: {above}\n"

    def chunk(self, chunk):
        """Adds a worker's chunk; returns whether the sum went up."""
        self.raw(chunk.worker, chunk.frame())
        at = (chunk.slot, chunk.version)
        this = self.rounds.get(at)
        if this is None or chunk.packet > this["number"]:
            this = self.rounds[at] = {"number": chunk.packet, "chunks": {}, "answer": None}
        if chunk.packet < this["number"]:
            return False
        chunks = this["chunks"]
        repeated = chunk.worker in chunks
        chunks.setdefault(chunk.worker, chunk)
        if len(chunks) < len(self.jobs[0].workers):
            return False
        if this["answer"] is not None:
            assert repeated
            self.result(chunk.worker, chunk, *this["answer"])
            return False
        exponents = tuple(max(e) for e in zip(*(c.exponents for c in chunks.values())))
        values = [sum(v) & 0xFFFFFFFF for v in zip(*(c.values for c in chunks.values()))]
        source = (SWITCH_MAC, SWITCH_IP, UDP_PORT + chunk.thread)
        target = (SPINE_MAC, SPINE_IP, UDP_PORT + chunk.thread)
        data = frame(source, target, chunk.slot, chunk.version, chunk.packet, exponents, values)
        self.leaves[self.UPLINK].append((self.time_ns, data))
        return True

    def answer(self, like, exponents, values):
        """Adds what the switch above says of the round of the chunk `like`."""
        source = (SPINE_MAC, SPINE_IP, UDP_PORT + like.thread)
        target = (SWITCH_MAC, SWITCH_IP, UDP_PORT + like.thread)
        self.raw(self.UPLINK, frame(source, target, like.slot, like.version, like.packet, exponents, values))
        this = self.rounds.get((like.slot, like.version))
        if this and this["number"] == like.packet and len(this["chunks"]) == len(self.jobs[0].workers):
            if this["answer"] is not None:
                return
            this["answer"] = (exponents, values)
        for worker in self.jobs[0].workers:
            self.result(worker, like, exponents, values)


def write_pcap(path, frames):
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65536, 1))
        for time_ns, data in frames:
            out.write(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(data), len(data)))
            out.write(data)


def ramp(first, elements):
    return [first + i for i in range(elements)]


def four_workers():
    """The captures of `tools/dev run switch`: a chunk is lost, and so is a result."""
    job = Job("a", [0, 1, 2, 3], 64, slots=2)
    capture = Capture("four_workers", 4, [job])

    def send(worker, packet):
        values = [1000 * packet + 100 * i + worker for i in range(64)]
        capture.chunk(Chunk(worker, packet % 2, packet // 2 % 2, packet, values, (worker, -worker)))

    for worker in range(4):
        send(worker, 0)
    for worker in (0, 1, 3):  # worker 2's is lost on the way
        send(worker, 1)
    for worker in range(4):  # nobody has a result: all repeat
        send(worker, 1)
    for worker in (1, 2, 3):  # the result of packet 0 did not reach worker 0
        send(worker, 2)
    send(0, 0)
    send(0, 2)
    for worker in range(4):
        send(worker, 3)
    return [capture]


def trace():
    """Thirteen packets that visit every state of a slot of two workers: those of the reference."""
    steps = [
        (0, 0, 0, 5), (0, 0, 0, 5), (1, 0, 0, 7), (0, 0, 0, 5), (1, 0, 0, 7), (0, 1, 1, 11), (1, 0, 0, 7),
        (1, 1, 1, 13), (0, 0, 2, 100), (1, 1, 1, 13), (1, 0, 2, 200), (0, 1, 3, 1), (1, 1, 3, 2),
    ]  # fmt: skip
    captures = []
    for elements in SIZE_CODE:
        capture = Capture(f"trace_{elements}", 2, [Job("a", [0, 1], elements, slots=1)])
        for worker, version, packet, value in steps:
            values = [value * (i + 1) for i in range(elements)]
            capture.chunk(Chunk(worker, 0, version, packet, values, (value % 100, -value % 100)))
        captures.append(capture)
    return captures


def rounds(capture, jobs, count, seed, twice=0.0, late=0.0, wide=False):
    """Rounds of random numbers; `twice`: repeated at once, `late`: after the round is complete.

    A worker repeats its chunk until it has a result, and starts the next round of a slot only then,
    so the captures hold frames as workers that follow the rules would send them."""
    rng = random.Random(seed)
    for number in range(count):
        for job in jobs:
            slot = job.first_slot + number % job.slots
            version = number // job.slots % 2
            served = set()
            chunks = {}
            for w in job.workers:
                first = rng.randrange(-(2**31), 2**31) if wide else rng.randrange(-1000, 1000)
                exponents = (rng.randrange(-128, 128), rng.randrange(-128, 128))
                chunks[w] = Chunk(w, slot, version, number, ramp(first, job.elements), exponents, thread=number % 16)
            order = list(job.workers)
            rng.shuffle(order)
            for w in order:
                served.update(capture.chunk(chunks[w]))
                while rng.random() < twice:
                    served.update(capture.chunk(chunks[w]))
            while missing := [w for w in job.workers if w not in served]:
                for w in missing:
                    served.update(capture.chunk(chunks[w]))
            for w in order:
                if rng.random() < late:
                    capture.chunk(chunks[w])


def repetitions():
    captures = []
    for name, twice, late, wide in (
        ("duplicates", 0.4, 0.0, False),
        ("late_retransmissions", 0.1, 0.6, False),
        ("wrap", 0.1, 0.1, True),
    ):
        job = Job("a", [0, 1, 2], 32, slots=2)
        capture = Capture(name, 3, [job])
        rounds(capture, [job], 8, seed=3, twice=twice, late=late, wide=wide)
        captures.append(capture)
    return captures


def last_slot():
    job = Job("a", [0, 1, 2], 32, first_slot=16382, slots=2)
    capture = Capture("last_slot", 3, [job])
    rounds(capture, [job], 6, seed=4, twice=0.2, late=0.2)
    return [capture]


def every_worker_count():
    """Job n has n workers and one slot."""
    jobs = [Job(f"of{n}", list(range(n)), 32, first_slot=n, slots=1) for n in range(1, 33)]
    capture = Capture("every_worker_count", 32, jobs)
    rounds(capture, jobs, 1, seed=5, twice=0.05, late=0.05)
    return [capture]


def loss():
    captures = []
    for name, losses in (
        ("loss_in", {0: (0.2, 0.0), 2: (0.1, 0.0)}),
        ("loss_out", {0: (0.0, 0.25), 1: (0.0, 0.125)}),
        ("loss_both", {0: (0.1, 0.1), 1: (0.2, 0.0), 3: (0.05, 0.3)}),
    ):
        jobs = [Job("a", [0, 1, 2, 3], 32, slots=2), Job("b", [2, 0], 32, first_slot=2, slots=1)]
        capture = Capture(name, 4, jobs, loss=losses)
        rounds(capture, jobs, 8, seed=6)
        captures.append(capture)
    return captures


def leaf():
    """Answers from above are lost, come twice or long after their round; workers ask again."""
    job = Job("a", [0, 1], 32, slots=2)
    capture = Leaf("leaf", job)
    rng = random.Random(7)
    old = []
    for number in range(40):
        slot, version = number % 2, number // 2 % 2
        chunks = [
            Chunk(w, slot, version, number, ramp(rng.randrange(-(2**31), 2**31), 32),
                  (rng.randrange(-128, 128), rng.randrange(-128, 128)), thread=number % 16)
            for w in job.workers
        ]  # fmt: skip
        answer = (chunks[0], (rng.randrange(-128, 128), rng.randrange(-128, 128)), ramp(rng.randrange(-1000, 1000), 32))
        sent = list(chunks)
        rng.shuffle(sent)
        if old and rng.random() < 0.4:
            capture.answer(*rng.choice(old))
        for chunk in sent:
            capture.chunk(chunk)
            if old and rng.random() < 0.2:
                capture.chunk(rng.choice(old)[0])
        while rng.random() < 0.4:  # the answer is lost, or the sum was
            capture.chunk(rng.choice(chunks))
        for _ in range(rng.randrange(1, 3)):
            capture.answer(*answer)
            while rng.random() < 0.5:  # the result is lost
                capture.chunk(rng.choice(chunks))
        old.append(answer)
    return [capture]


def hostile():
    """Two jobs that share a worker's port, and frames that may not touch either."""
    jobs = [Job("a", [0, 1], 32, slots=2), Job("b", [1, 2], 32, first_slot=2, slots=2)]
    capture = Capture("hostile", 3, jobs, forward=True)
    ones = [1] * 32
    rounds(capture, jobs, 1, seed=7)
    capture.chunk(Chunk(0, 1, 0, 9, ramp(10, 32)))
    good = Chunk(1, 1, 0, 9, ramp(20, 32)).frame()
    capture.chunk(Chunk(1, 1, 0, 9, ones, port=0))  # worker 1's address, worker 0's port
    capture.chunk(Chunk(2, 1, 0, 9, ones))  # a slot of the other job
    capture.chunk(Chunk(1, 4, 0, 9, ones))  # a slot of no job
    capture.chunk(Chunk(7, 1, 0, 9, ones, port=1))  # nobody
    # Another type, an unknown size, a fragment, wrong lengths.
    for at, value in ((42, 0x20), (42, 0x12), (20, 0x20), (16, 0x02), (38, 0x01), (39, 0xFF)):
        bad = bytearray(good)
        bad[at] = value
        capture.raw(1, bytes(bad))
    for length in (42, 43, 51, 52, 53, len(good) - 1):
        capture.raw(1, good[:length])
    reserved = bytearray(good)
    reserved[20] = 0x80  # the reserved bit beside "do not fragment"
    capture.raw(1, bytes(reserved))
    no_udp = bytearray(good[:38])
    no_udp[16:18] = struct.pack(">H", 24)  # an IPv4 packet without room for the UDP header it claims
    capture.raw(1, bytes(no_udp))
    for tag in (b"\x81\x00\x00\x05", b"\x88\xa8\x00\x05"):  # VLAN tags: not the switch's frames, nor any port's
        capture.raw(1, good[:12] + tag + good[12:])
    options = bytearray(good[:34] + bytes(4) + good[34:])
    options[14] = 0x46
    options[16:18] = struct.pack(">H", len(options) - 14)
    capture.raw(1, bytes(options))
    # The last one has a wrong IPv4 checksum, which switches do not check, and trailing bytes, which
    # they cut off.
    capture.chunk(Chunk(1, 1, 0, 9, ramp(20, 32)), spoil=lambda f: f[:24] + b"\xde\xad" + f[26:] + b"spoiled")
    ordinary = worker_mac(2) + worker_mac(0) + b"\x08\x06" + bytes(46)
    capture.raw(0, ordinary, out=[2])
    capture.raw(0, b"\xff" * 6 + ordinary[6:], out=[1, 2])
    capture.raw(0, worker_mac(9) + ordinary[6:])
    other_port = bytearray(good)
    other_port[37] = 0xF0
    other_port[0:6] = worker_mac(0)
    capture.raw(1, bytes(other_port), out=[0])
    return [capture]


FIRST, MIDDLE, LAST_IMMEDIATE = 0x26, 0x27, 0x29
MESSAGE = (FIRST, MIDDLE, MIDDLE, LAST_IMMEDIATE)
ROCE_PORT = 4791
ADDRESS, LENGTH = 0x7F0000001000, 4 * 1024


def roce_frame(source, target, opcode, pair, sequence, key, message, exponents, values):
    """An RDMA write over an unreliable connection; source, target: (MAC, IPv4 address)."""
    transport = struct.pack(">BBHII", opcode, 0, 0xFFFF, pair, sequence & 0xFFFFFF)
    if opcode == FIRST:
        transport += struct.pack(">QII", ADDRESS, key, LENGTH)
    if opcode == LAST_IMMEDIATE:
        transport += struct.pack(">Hbb", message, *exponents)
    payload = transport + b"".join(struct.pack(">I", v & 0xFFFFFFFF) for v in values) + bytes(4)
    ip = struct.pack(">BBHHHBBHII", 0x45, 0, 28 + len(payload), 0, 0, 64, 17, 0, source[1], target[1])
    ip = ip[:10] + struct.pack(">H", checksum(ip)) + ip[12:]
    udp = struct.pack(">HHHH", 0xC000, ROCE_PORT, 8 + len(payload), 0)
    return target[0] + source[0] + b"\x08\x00" + ip + udp + payload


class RoceCapture(Capture):
    """Over RoCEv2: a register per queue pair holds the next sequence number and the next place; an
    error after a gap lasts until the next message begins."""

    ERROR = 0x80000000

    def __init__(self, name, job):
        super().__init__(name, len(job.workers), [job])
        self.register = {}
        self.leaving = {w: 0xFFFFFE for w in job.workers}  # sequence numbers that wrap soon

    def packet(self, worker, opcode, sequence, slot, version, message, exponents, values):
        key = slot << 1 | version
        source, target = (worker_mac(worker), worker_ip(worker)), (SWITCH_MAC, SWITCH_IP)
        data = roce_frame(source, target, opcode, worker << 16, sequence, key, message, exponents, values)
        self.raw(worker, data)
        following, place = self.register.get(worker, (self.ERROR, 0))
        if opcode == FIRST:
            place = key
        elif following != sequence:
            self.register[worker] = (self.ERROR, 0)
            return
        self.register[worker] = (self.ERROR if opcode == LAST_IMMEDIATE else sequence + 1, place + 2)
        job = self.jobs[0]
        if not job.first_slot <= place >> 1 < job.first_slot + job.slots:
            self.register[worker] = (self.ERROR, 0)
            return
        low = exponents if opcode == LAST_IMMEDIATE else (-128, -128)
        receivers, e, sums = job.receive(Chunk(worker, place >> 1, place & 1, 0, values, low))
        for w in receivers:
            to = (worker_mac(w), worker_ip(w))
            result = roce_frame(target, to, opcode, 0x100 + w, self.leaving[w], 0xABC0 + w, message, e, sums)
            self.leaving[w] = self.leaving[w] + 1 & 0xFFFFFF
            self.leaves[w].append((self.time_ns, result))

    def message(self, worker, number, sequence, lost=()):
        """Message `number`: four packets from slot 4 * (number % 2); those in `lost` do not arrive."""
        for n, opcode in enumerate(MESSAGE):
            if n not in lost:
                self.packet(
                    worker, opcode, sequence + n, 4 * (number % 2), number // 2 % 2, number,
                    (worker - number, number - worker), ramp(1000 * number + 100 * n + worker, 256),
                )  # fmt: skip

    def plan(self):
        job = self.jobs[0]
        text = "schema: ghostrank/switch/1\nmac: 02:00:00:00:ff:01\nip: 10.0.0.254\njobs:\n"
        text += f"  - name: {job.name}\n    format: roce\n    slots: {job.slots}\n    workers:\n"
        for w in job.workers:
            text += (
                f"      - {{port: {w}, mac: {worker_mac(w).hex(':')}, ip: 10.0.0.{w + 1},"
                f" remote_key: {hex(0xABC0 + w)}, queue_pairs: [{{number: {0x100 + w}, first_sequence: {0xFFFFFE}}}]}}\n"
            )
        return text


def roce():
    """Messages over RoCEv2: one with a gap, sent again as a whole; one that asks for a result again;
    one beyond the job's slots."""
    capture = RoceCapture("roce", Job("a", [0, 1, 2], 256, slots=8))
    sequence = {0: 100, 1: 0xFFFFF0, 2: 5}

    def send(worker, number, lost=()):
        capture.message(worker, number, sequence[worker], lost)
        sequence[worker] += len(MESSAGE)

    for worker in range(3):
        send(worker, 0)
    send(0, 1)
    send(1, 1, lost=(1,))
    send(2, 1)
    send(1, 1)
    send(0, 1)  # its result was lost
    for worker in (2, 1, 0):
        send(worker, 2)
    capture.packet(1, FIRST, 7, 8, 0, 9, (0, 0), ramp(0, 256))
    capture.packet(1, MIDDLE, 8, 8, 0, 9, (0, 0), ramp(0, 256))
    for worker in (1, 2, 0):
        send(worker, 3)
    return [capture]


def main():
    scenarios = (four_workers, trace, repetitions, last_slot, every_worker_count, loss, leaf, hostile, roce)
    for scenario in scenarios:
        for capture in scenario():
            capture.write()


if __name__ == "__main__":
    main()
