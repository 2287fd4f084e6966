"""NCCL's rules for cutting calls into messages, written down a second time for the tests.

This calls nothing of ghostrank: what it computes is compared with the schedules message by message.
It covers what nccl_vectors.py needs of 2.28.9 and 2.30.7.
"""

KIB = 1024
STEPS = 8  # slots of a connection's FIFO
MIN_TRAFFIC = {"2.28": 16 * KIB, "2.30": 32 * KIB}  # bytes per channel
STEP = {"Simple": 512 * KIB, "LL": 32 * KIB, "LL128": 576000}  # bytes of data in a slot
GRAIN = {"Simple": 512, "LL": 16, "LL128": 1920}
P2P_PAGE = 4096


def ceil_div(a, b):
    return -(-a // b)


def round_up(a, to):
    return ceil_div(a, to) * to


def power_of_two_from(n):
    return 1 << (n - 1).bit_length()


def lowest_bit(n):
    return (n & -n).bit_length() - 1


def reverse_bits(value, bits):
    return sum(((value >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))


def wire_bytes(protocol, elements, element_bytes):
    """LL: lines of 8 bytes of data and 8 of flags. LL128: whole units of 16 lines, each 120 and 8."""
    if protocol == "LL":
        return 16 * ceil_div(elements, 8 // element_bytes)
    if protocol == "LL128":
        return 16 * 128 * ceil_div(elements * element_bytes, 16 * 120)
    return elements * element_bytes


# ---- Channels and chunks ---------------------------------------------------------------------


class Task:
    """One call. NCCL plans an all-gather and a broadcast in bytes."""

    def __init__(self, func, ranks, count, element_bytes, protocol, max_channels):
        in_bytes = func in ("all_gather", "broadcast")
        self.func, self.ranks, self.protocol = func, ranks, protocol
        self.count = count * element_bytes if in_bytes else count
        self.element_bytes = 1 if in_bytes else element_bytes
        self.max_channels = max_channels

    def traffic_per_byte(self):
        by_func = {"allreduce": 2, "all_gather": self.ranks, "reduce_scatter": self.ranks}
        return by_func.get(self.func, 1) * (4 if self.protocol == "LL" else 1)

    def bytes(self):
        return self.count * self.element_bytes


def split_over_channels(tasks, channels, version):
    """(first, [elements of each channel]) of every task of one launch."""
    least = MIN_TRAFFIC[version]
    total = sum(max(least, t.bytes() * t.traffic_per_byte()) for t in tasks)
    share = total // min(sum(t.max_channels for t in tasks), channels)
    share = max(least, share) if version == "2.28" else round_up(share, 16)
    result, channel, used = [], 0, 0
    for task in tasks:
        per_byte = task.traffic_per_byte()
        cell = round_up(ceil_div(least, per_byte), 16)
        cell_elements, cell_traffic = cell // task.element_bytes, cell * per_byte
        cells = ceil_div(task.bytes(), cell)
        each = min(cells, ceil_div(share, cell_traffic))
        if channel + 1 == channels:
            lo = cells
        else:
            lo = min(cells, ceil_div(share - used, cell_traffic))
        mid, hi = divmod(cells - lo, each)
        if channel + (lo > 0) + mid + (hi > 0) > channels:
            mid = channels - channel - 2
            each, rest = divmod(cells - lo, mid + 1)
            hi = each + rest
        if hi == 0 and mid > 0:
            hi, mid = each, mid - 1
        if lo == 0:
            channel += 1
            if mid == 0:
                lo, hi = hi, 0
            else:
                lo, mid = each, mid - 1
        parts = [n * cell_elements for n in [lo] + [each] * mid + ([hi] if hi else [])]
        parts[-1] -= cells * cell_elements - task.count
        result.append((channel, parts))
        if hi:
            channel += len(parts) - 1
            used = hi * cell_traffic
        elif mid:
            channel, used = channel + len(parts), 0
        else:
            used += lo * cell_traffic
        if used >= share and channel + 1 < channels:
            channel, used = channel + 1, 0
    return result


def halve(chunk, limit, while_true):
    while chunk > limit and while_true(chunk):
        chunk //= 2
    return chunk


def chunk_bytes(algorithm, task, elements, nodes, heads):
    """Bytes of a chunk on a channel that holds `elements` of the task."""
    chunk = STEP[task.protocol]
    gathers = task.func in ("all_gather", "reduce_scatter")
    data = elements * task.element_bytes * (task.ranks if gathers else 1)
    if algorithm == "ring" and task.protocol == "Simple" and (gathers or task.func == "allreduce"):
        chunk *= 4
    elif algorithm == "tree" and task.protocol == "LL128":
        ranks_per_node = task.ranks / nodes
        levels = nodes.bit_length() + 0.1 * ranks_per_node
        chunk = halve(chunk, 128 * KIB, lambda c: data // c < levels * 64 / ranks_per_node)
        chunk = halve(chunk, 32 * KIB, lambda c: data // c < levels * 16 / ranks_per_node)
    elif algorithm == "pat":
        factor = 32 if task.func == "all_gather" else 16
        chunk = halve(chunk, 64 * KIB, lambda c: c * factor > data)
    elif algorithm == "nvlstree":
        chunk = 64 * KIB if nodes >= 4 else 128 * KIB
        for times, most in ((32, 256), (16, 128), (4, 64), (1, 32)):
            if data < times * heads * chunk:
                chunk = min(chunk, most * KIB)
    return chunk // GRAIN[task.protocol] * GRAIN[task.protocol]


# ---- Rings -----------------------------------------------------------------------------------


def slices(task, elements):
    """Elements of the messages of one primitive of a ring; empty messages are sent too."""
    if task.protocol != "Simple" or task.func in ("broadcast", "reduce"):
        return [elements]
    per_primitive, steps_of_slice = 2, 2
    step = STEP["Simple"] // task.element_bytes
    most = max(ceil_div(elements, 16 * per_primitive) * 16, step * steps_of_slice // 32)
    return [min(most, max(0, elements - k * most)) for k in range(per_primitive)]


def ring_primitives(task, index, elements):
    """Elements of each primitive that the rank at `index` of the ring (a broadcast's root) sends."""
    n = task.ranks
    chunk = chunk_bytes("ring", task, elements, 1, 1) // task.element_bytes
    if task.func != "allreduce":
        times = 1 if task.func == "broadcast" else n - 1
        for at in range(0, elements, chunk):
            yield from [min(chunk, elements - at)] * times
        return
    for at in range(0, elements, n * chunk):
        rest = elements - at
        if rest < n * chunk:
            chunk = round_up(ceil_div(rest, n), 16 // task.element_bytes)
        reduced = [(index - k) % n for k in range(1, n)]
        gathered = [(index - k) % n for k in range(n - 1)]
        for block in reduced + gathered:
            yield min(chunk, max(0, rest - block * chunk))
        if rest < n * chunk:
            return


def runs(values):
    """[[value, repeat], ...]"""
    result = []
    for value in values:
        if result and result[-1][0] == value:
            result[-1][1] += 1
        else:
            result.append([value, 1])
    return result


def ring_sends(task, index, channels, version):
    """[channel, runs of bytes of messages] for every channel of a call alone in its launch."""
    (first, parts), = split_over_channels([task], channels, version)
    sends = []
    for k, elements in enumerate(parts):
        messages = (wire_bytes(task.protocol, n, task.element_bytes)
                    for primitive in ring_primitives(task, index, elements)
                    for n in slices(task, primitive))
        sends.append([first + k, runs(messages)])
    return sends


# ---- Double trees ----------------------------------------------------------------------------


def binary_tree(nodes, rank):
    """(up, child 0, child 1, which child of its parent the rank is); -1: none; None: the root."""
    if rank == 0:
        return -1, -1, power_of_two_from(nodes) // 2 if nodes > 1 else -1, None
    bit = rank & -rank
    up = (rank ^ bit) | 2 * bit
    if up >= nodes:
        up = rank ^ bit
    reach = bit // 2
    first = rank - reach if reach else -1
    while reach and rank + reach >= nodes:
        reach //= 2
    return up, first, rank + reach if reach else -1, 0 if rank < up else 1


def second_tree(nodes, rank):
    """The mirror image over an even number of nodes; else the first tree, shifted by one."""
    if nodes % 2 == 0:
        image = lambda x: nodes - 1 - x
        tree = binary_tree(nodes, image(rank))
    else:
        image = lambda x: (x + 1) % nodes
        tree = binary_tree(nodes, (rank - 1) % nodes)
    return tuple(x if x < 0 else image(x) for x in tree[:3]) + tree[3:]


# ---- PAT -------------------------------------------------------------------------------------


def mirror_inverted(a, length):
    bits = length.bit_length() - 1
    return reverse_bits(~a & (length - 1), bits)


def pat_shape(ranks, block, chunk):
    """(aggregated trees, distance between them, blocks of a message)"""
    trees, distance = 1, power_of_two_from(ranks)
    while chunk // (block * trees) >= 2 and trees < ranks // 2:
        trees, distance = 2 * trees, distance // 2
    post = trees
    for _ in range(3):
        if trees < ranks // 2:
            trees, distance = 2 * trees, distance // 2
    return trees, distance, post


def pat_reduce_scatter(ranks, trees, distance, post):
    """(dimension, blocks) of every message of a rank, holes counted as blocks."""

    def posted(a, length, s):
        if a % post == post - 1 or a == length - 1:
            yield lowest_bit(s), a % post + 1

    for offset in range(distance - 1, 0, -2):
        for a in range(trees):  # own contributions
            if mirror_inverted(a, trees) * distance + offset < ranks:
                yield from ((0, blocks) for _, blocks in posted(a, trees, 1))
        for a in range(trees if offset > 1 else 0):  # sums, complete after the child at distance 1
            s = mirror_inverted(a, trees) * distance + offset - 1
            if s < ranks:
                yield from posted(a, trees, s)
    scale = 1
    while scale < trees:
        length = trees // (2 * scale)
        for a in range(length):
            s = (2 * mirror_inverted(a, length) + 1) * scale * distance
            if s < ranks:
                yield from posted(a, length, s)
        scale *= 2


def pat_visit(start, levels):
    for d in range(levels - 1, -1, -1):
        yield start + (1 << d)
        yield from pat_visit(start + (1 << d), d)


def pat_all_gather(ranks, trees, distance, post):
    """As pat_reduce_scatter()."""

    def step(a, s, stride):
        if s < ranks and (a % post == post - 1 or s + stride >= ranks):
            yield lowest_bit(s), a % post + 1

    scale = trees // 2
    while scale >= 1:
        for a in range(trees // (2 * scale)):
            yield from step(a, (2 * a + 1) * scale * distance, 2 * scale * distance)
        scale //= 2
    for offset in pat_visit(0, lowest_bit(distance)):
        for a in range(trees):
            yield from step(a, a * distance + offset, distance)


def pat_sends(op, ranks, rank, size, chunk):
    """[peer, bytes] of every message, in order."""
    walk, sign = (pat_all_gather, -1) if op == "AG" else (pat_reduce_scatter, 1)
    messages = list(walk(ranks, *pat_shape(ranks, size, chunk)))
    return [[(rank + sign * (1 << dimension)) % ranks, blocks * min(chunk, size - at)]
            for at in range(0, size, chunk) for dimension, blocks in messages]


# ---- Point to point --------------------------------------------------------------------------


def p2p_distances(groups):
    """0, 1, 3, 6, 10, ... modulo a power of two, those below the number of groups."""
    modulus = power_of_two_from(groups)
    distance = 0
    for k in range(1, modulus + 1):
        if distance < groups:
            yield distance
        distance = (distance + k) % modulus


def p2p_schedule(nodes, per_node, rank, group, channels):
    """Peers sent to and received from in every round, and the first channel of the round."""
    groups, size = nodes * per_node // group, nodes * per_node
    own, local = divmod(rank, group)
    partner = lambda sign: [(own + sign * d) % groups * group + (local + sign * k) % group
                            for d in p2p_distances(groups) for k in range(group)]
    bits, per_group = channels.bit_length() - 1, ceil_div(group, 8)
    bases = [reverse_bits((r // group * per_group + r % group // 8) % channels, bits)
             for r in range(size)]
    return partner(1), partner(-1), bases


def p2p_parts(size, least_channels, most_channels):
    """Runs of bytes of messages for every channel of one operation between nodes."""
    chunk = 128 * KIB
    if size == 0:
        return [[[0, 1]]]
    least, most = chunk // 2, chunk
    parts = min(least_channels, ceil_div(size, least))
    part = max(least, ceil_div(size, parts))
    while part > most and parts <= most_channels // 2:
        parts *= 2
        part = ceil_div(size, parts)
    message = chunk // 4 if size < chunk else chunk // 2 if size < 8 * chunk else chunk
    part = round_up(ceil_div(size, parts), P2P_PAGE)
    edges = [(p * part, min(size, (p + 1) * part)) for p in range(parts)]
    return [runs(min(message, end - at) for at in range(begin, end, message))
            for begin, end in edges]
