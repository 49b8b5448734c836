"""Unpacks Zstandard data, which Python reads by itself only from 3.14 on and inspect-ai packs its logs with.

    zstd.unpacked(data, limit)      # every frame of `data`, at most `limit` bytes; raises BadData

Frames without a dictionary, which is what a file holds. The frames' own checksum is not looked at: the archive around
them has one. About a megabyte a second. Pure. Source: RFC 8878 (Collet & Kucherawy 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

# === Constants ===

MAGIC = 0xFD2FB528
SKIPPABLE = 0x184D2A50  # the last four bits are free
MOST_BLOCK = 1 << 17  # bytes that one block may unpack to
REFILL = 32  # bytes taken into the window at once
SMALL_BLOCK = 1024  # bytes; only a frame's last block is smaller as a rule
MAX_SMALL_BLOCKS = 100  # the tables of a block of a few bytes take as long to make as those of a full one
# Code -> (smallest value, further bits), RFC 8878 tables 16 and 17.
LITERAL_CODES = [(code, 0) for code in range(16)] + list(
    zip(
        (16, 18, 20, 22, 24, 28, 32, 40, 48, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536),
        (1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
    )
)
MATCH_CODES = [(code + 3, 0) for code in range(32)] + list(
    zip(
        (35, 37, 39, 41, 43, 47, 51, 59, 67, 83, 99, 131, 259, 515, 1027, 2051, 4099, 8195, 16387, 32771, 65539),
        (1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
    )
)
OFFSET_CODES = [(1 << code, code) for code in range(32)]
# Predefined probabilities, RFC 8878 section 3.1.1.3.2.2; -1 is "less than one".
LITERAL_DEFAULT = [4, 3, *[2] * 11, 1, 1, 1, *[2] * 9, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1]
MATCH_DEFAULT = [1, 4, 3, *[2] * 6, *[1] * 37, *[-1] * 7]
OFFSET_DEFAULT = [*[1] * 6, 2, 2, 2, *[1] * 15, *[-1] * 5]


class BadData(Exception):
    """Bytes that are no Zstandard data, or more than was allowed."""


class State(NamedTuple):
    """One state of a finite state decoder: its symbol, and how the next state is found."""

    symbol: int
    bits: int
    base: int


Table = tuple[list[State], int]  # states, accuracy log


# === Bits ===


class Backward:
    """The bits of a stream that is read from its end; beyond its start come zeros, and `left` goes below 0."""

    def __init__(self, data: bytes) -> None:
        if not data or not data[-1]:
            raise BadData("a bit stream without its end mark")
        self.data, self.at = data, len(data) - 1
        self.count = data[-1].bit_length() - 1
        self.window = data[-1] & ((1 << self.count) - 1)
        self.beyond = 0  # bits read past the start

    def fill(self, wanted: int) -> None:
        """Make the window hold at least that many bits."""
        while self.count < wanted:
            start = max(0, self.at - REFILL)
            size = self.at - start
            if not size:
                missing = wanted - self.count
                self.window, self.count, self.beyond = self.window << missing, wanted, self.beyond + missing
                return
            self.window = (self.window << (8 * size)) | int.from_bytes(self.data[start : self.at], "little")
            self.count, self.at = self.count + 8 * size, start

    def read(self, bits: int) -> int:
        if self.count < bits:
            self.fill(bits)
        self.count -= bits
        value = self.window >> self.count
        self.window &= (1 << self.count) - 1
        return value

    @property
    def left(self) -> int:
        """Bits of the stream that are not read; below 0 when more were read than there are."""
        return self.count + 8 * self.at - self.beyond


# === Finite state entropy ===


def read_probabilities(data: bytes, start: int, most_log: int) -> tuple[list[int], int, int]:
    """(probabilities, accuracy log, position behind them) of a table description."""
    stream, at = int.from_bytes(data[start : start + 512], "little"), 4
    log = (stream & 15) + 5
    if log > most_log:
        raise BadData("a table of too high accuracy")
    left, found = 1 << log, []
    while left > 0:
        bits = (left + 1).bit_length()
        value, low = (stream >> at) & ((1 << bits) - 1), (1 << (bits - 1)) - 1
        threshold = (1 << bits) - 1 - (left + 1)
        if value & low < threshold:
            value, at = value & low, at + bits - 1
        else:
            value, at = (value - threshold if value > low else value), at + bits
        found.append(value - 1)
        left -= abs(value - 1)
        while value == 1:  # a zero is followed by how many more, in pairs of bits
            more, at = (stream >> at) & 3, at + 2
            found += [0] * more
            if more != 3:
                break
        if len(found) > 256:
            raise BadData("a table of too many symbols")
    if left < 0:
        raise BadData("probabilities that do not add up")
    return found, log, start + (at + 7) // 8


def state_table(probabilities: Sequence[int], log: int) -> Table:
    """The decoder's states for some probabilities."""
    size = 1 << log
    symbols, next_state = [0] * size, {}
    high = size
    for symbol, probability in enumerate(probabilities):
        if probability == -1:
            high -= 1
            symbols[high], next_state[symbol] = symbol, 1
    step, place = (size >> 1) + (size >> 3) + 3, 0
    for symbol, probability in enumerate(probabilities):
        if probability > 0:
            next_state[symbol] = probability
            for _ in range(probability):
                symbols[place] = symbol
                place = (place + step) & (size - 1)
                while place >= high:
                    place = (place + step) & (size - 1)
    states = []
    for symbol in symbols:
        number = next_state[symbol]
        next_state[symbol] += 1
        bits = log - number.bit_length() + 1
        states.append(State(symbol, bits, (number << bits) - size))
    return states, log


# === Huffman ===


def read_weights(data: bytes, start: int) -> tuple[list[int], int]:
    """(weights of all symbols but the last, position behind them) of a Huffman tree description."""
    head = data[start]
    if head >= 128:
        count = head - 127
        packed = data[start + 1 : start + 1 + (count + 1) // 2]
        return [half for byte in packed for half in (byte >> 4, byte & 15)][:count], start + 1 + len(packed)
    end = start + 1 + head
    probabilities, log, at = read_probabilities(data[:end], start + 1, 6)
    (states, _), stream = state_table(probabilities, log), Backward(data[at:end])
    current = [stream.read(log), stream.read(log)]
    weights: list[int] = []
    while len(weights) < 256:
        turn = len(weights) & 1
        state = states[current[turn]]
        weights.append(state.symbol)
        current[turn] = state.base + stream.read(state.bits)
        if stream.left < 0:
            weights.append(states[current[1 - turn]].symbol)
            break
    return weights, end


def huffman_table(weights: list[int]) -> tuple[list[tuple[int, int]], int]:
    """([(symbol, bits)] for every prefix, longest code in bits); the last weight is what is left of the whole."""
    total = sum(1 << (weight - 1) for weight in weights if weight)
    longest = total.bit_length()
    rest = (1 << longest) - total
    if not total or longest > 11 or rest & (rest - 1):
        raise BadData("weights that make no Huffman tree")
    weights = [*weights, rest.bit_length()]
    table: list[tuple[int, int]] = []
    for weight in range(1, longest + 1):
        for symbol, own in enumerate(weights):
            if own == weight:
                table += [(symbol, longest + 1 - weight)] * (1 << (weight - 1))
    return table, longest


def huffman_stream(data: bytes, count: int, table: list[tuple[int, int]], longest: int) -> bytes:
    """The next `count` symbols of one stream."""
    stream, out = Backward(data), bytearray()
    window, held = stream.window, stream.count
    for _ in range(count):
        if held < longest:
            stream.window, stream.count = window, held
            stream.fill(longest)
            window, held = stream.window, stream.count
        symbol, bits = table[window >> (held - longest)]
        out.append(symbol)
        held -= bits
        window &= (1 << held) - 1
    stream.count = held
    if stream.left != 0:
        raise BadData("a Huffman stream that does not end where it should")
    return bytes(out)


# === Blocks ===


class Frame:
    """What the blocks of one frame share: output so far, tables in use, the last three offsets."""

    def __init__(self, limit: int) -> None:
        self.out = bytearray()
        self.limit = limit
        self.huffman: tuple[list[tuple[int, int]], int] | None = None
        self.tables: dict[str, Table] = {}
        self.offsets = [1, 4, 8]

    def add(self, data: bytes) -> None:
        self.out += data
        if len(self.out) > self.limit:
            raise BadData("unpacks to more than was said")

    def compressed(self, data: bytes) -> None:
        """One compressed block."""
        literals, at = self.literals(data)
        count, at = sequence_count(data, at)
        if not count:
            self.add(literals)
            return
        modes, at = data[at], at + 1
        plans = (("ll", 6, LITERAL_DEFAULT, 6, 9), ("of", 4, OFFSET_DEFAULT, 5, 8), ("ml", 2, MATCH_DEFAULT, 6, 9))
        for name, shift, default, log, most in plans:
            at = self.set_table(name, (modes >> shift) & 3, default, log, most, data, at)
        self.sequences(Backward(data[at:]), count, literals)

    def set_table(self, name: str, mode: int, default: Sequence[int], log: int, most: int, data: bytes, at: int) -> int:
        """Choose the table of one kind of code; returns the position behind its description."""
        if mode == 0:
            self.tables[name] = state_table(default, log)
        elif mode == 1:
            self.tables[name] = [State(data[at], 0, 0)], 0
            at += 1
        elif mode == 2:
            probabilities, log, at = read_probabilities(data, at, most)
            self.tables[name] = state_table(probabilities, log)
        elif name not in self.tables:
            raise BadData("a table is repeated that was never given")
        return at

    def literals(self, data: bytes) -> tuple[bytes, int]:
        """(the block's literals, position behind them)."""
        kind, form = data[0] & 3, (data[0] >> 2) & 3
        if kind < 2:
            width = {1: 2, 3: 3}.get(form, 1)
            count = int.from_bytes(data[:width], "little") >> (4 if form & 1 else 3)
            if count > MOST_BLOCK:
                raise BadData("too many literals")
            if kind == 1:
                return data[width : width + 1] * count, width + 1
            return data[width : width + count], width + count
        width, bits = {2: (4, 14), 3: (5, 18)}.get(form, (3, 10))
        head = int.from_bytes(data[:width], "little") >> 4
        count, packed = head & ((1 << bits) - 1), head >> bits
        end, at = width + packed, width
        if count > MOST_BLOCK:
            raise BadData("too many literals")
        if kind == 2:
            weights, at = read_weights(data[:end], width)
            self.huffman = huffman_table(weights)
        if self.huffman is None:
            raise BadData("a Huffman tree is repeated that was never given")
        if form == 0:
            return huffman_stream(data[at:end], count, *self.huffman), end
        return self.four_streams(data[at:end], count), end

    def four_streams(self, data: bytes, count: int) -> bytes:
        """Literals in four streams, the first three with their sizes in front."""
        assert self.huffman is not None
        sizes = [int.from_bytes(data[i : i + 2], "little") for i in (0, 2, 4)]
        each, at, parts = (count + 3) // 4, 6, []
        for size in sizes:
            parts.append(huffman_stream(data[at : at + size], each, *self.huffman))
            at += size
        parts.append(huffman_stream(data[at:], count - 3 * each, *self.huffman))
        return b"".join(parts)

    def sequences(self, stream: Backward, count: int, literals: bytes) -> None:
        """Carry out the block's sequences: some literals, then a copy of what stands before."""
        (lls, ll_log), (ofs, of_log), (mls, ml_log) = (self.tables[name] for name in ("ll", "of", "ml"))
        read, used, out = stream.read, 0, self.out
        ll, of, ml = read(ll_log), read(of_log), read(ml_log)
        for number in range(count):
            l_state, o_state, m_state = lls[ll], ofs[of], mls[ml]
            base, bits = OFFSET_CODES[o_state.symbol]
            value = base + read(bits)
            base, bits = MATCH_CODES[m_state.symbol]
            length = base + read(bits)
            base, bits = LITERAL_CODES[l_state.symbol]
            plain = base + read(bits)
            if number < count - 1:
                ll, ml = l_state.base + read(l_state.bits), m_state.base + read(m_state.bits)
                of = o_state.base + read(o_state.bits)
            out += literals[used : used + plain]
            used += plain
            self.copy(self.offset(value, plain), length)
        if stream.left != 0 or used > len(literals):
            raise BadData("sequences that do not end where they should")
        self.add(literals[used:])

    def offset(self, value: int, plain: int) -> int:
        """The distance a value stands for: a new one, or one of the last three."""
        last = self.offsets
        if value > 3:
            last[:] = [value - 3, last[0], last[1]]
            return last[0]
        place = value - 1 + (plain == 0)
        found = last[place] if place < 3 else last[0] - 1
        if place:
            last[:] = [found, last[0], last[2] if place == 1 else last[1]]
        return found

    def copy(self, offset: int, length: int) -> None:
        """Repeat `length` bytes from `offset` back; the two may overlap."""
        out, size = self.out, len(self.out)
        if not 0 < offset <= size or size + length > self.limit:
            raise BadData("a copy from before the start, or past the end")
        piece = out[size - offset : size - offset + length]
        if len(piece) < length:
            piece = (piece * (length // len(piece) + 1))[:length]
        out += piece


def sequence_count(data: bytes, at: int) -> tuple[int, int]:
    """(number of sequences of a block, position behind it)."""
    first = data[at]
    if first < 128:
        return first, at + 1
    if first < 255:
        return ((first - 128) << 8) + data[at + 1], at + 2
    return int.from_bytes(data[at + 1 : at + 3], "little") + 0x7F00, at + 3


# === Frames ===


def frame_start(data: bytes, at: int) -> tuple[int, bool]:
    """(position of the first block, whether a checksum follows the last) of a frame behind its magic number."""
    flags = data[at]
    single = bool(flags & 32)
    content = (int(single), 2, 4, 8)[flags >> 6]
    if flags & 3:
        raise BadData("a frame that needs a dictionary")
    return at + 1 + (not single) + content, bool(flags & 4)


def one_more_small(small: int) -> int:
    """The number of small blocks with one more. Raises: BadData for too many."""
    if small >= MAX_SMALL_BLOCKS:
        raise BadData(f"more than {MAX_SMALL_BLOCKS} blocks hold less than {SMALL_BLOCK} bytes each")
    return small + 1


def frame(data: bytes, at: int, limit: int, small: int) -> tuple[bytes, int, int]:
    """(content, position behind, small blocks so far) of one frame behind its magic number."""
    at, checked = frame_start(data, at)
    found, last = Frame(limit), False
    while not last:
        head = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = bool(head & 1), (head >> 1) & 3, head >> 3
        at += 3
        taken = 1 if kind == 1 else size
        if kind == 3 or size > MOST_BLOCK or at + taken > len(data):
            raise BadData("a block that is no block, or is cut off")
        piece, before = data[at : at + taken], len(found.out)
        if kind == 2:
            found.compressed(piece)
        else:
            found.add(piece * size if kind == 1 else piece)
        at += taken
        if len(found.out) - before < SMALL_BLOCK:
            small = one_more_small(small)
    return bytes(found.out), at + (4 if checked else 0), small


def unpacked(data: bytes, limit: int) -> bytes:
    """The content of all frames. limit: bytes it may be at most. Raises: BadData for anything else."""
    parts, at, left, small = [], 0, limit, 0
    try:
        while at < len(data):
            magic = int.from_bytes(data[at : at + 4], "little")
            if magic & ~15 == SKIPPABLE:
                small = one_more_small(small)
                at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
                continue
            if magic != MAGIC:
                raise BadData("no Zstandard frame")
            part, at, small = frame(data, at + 4, left, small)
            parts.append(part)
            left -= len(part)
    except (IndexError, KeyError, OverflowError):
        raise BadData("damaged or cut off") from None
    return b"".join(parts)
