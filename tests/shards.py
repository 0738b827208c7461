#!/usr/bin/env python3
"""Python looks at ranks' parts of tensors, in place and in files: their shapes and numbers, and that what it writes arrives.

    shards.py LIBRARY [--numpy]        LIBRARY is that of shards.cpp; --numpy: through NumPy too, which then must be there
"""
import ast
import ctypes
import itertools
import math
import pathlib
import struct
import sys
import tempfile

LOOK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p)
ELEMENTS = {"<f4": ctypes.c_float, "<f8": ctypes.c_double, "<f2": ctypes.c_uint16, "<i4": ctypes.c_int}
WHOLE = [(6, 4), (2, 3, 4, 5)]  # tensors that shards.cpp cuts in two where the dimension is 4
failures = []


def check(is_so, what):
    if not is_so:
        failures.append(what)


class Array:
    """What numpy.asarray takes without a copy."""

    def __init__(self, text):
        self.__array_interface__ = ast.literal_eval(text)


def part_of(shape, rank):
    """A rank's part of numbers that count up, by the definition of a split."""
    own = [range(2 * rank, 2 * rank + 2) if size == 4 else range(size) for size in shape]
    return [sum(i * math.prod(shape[d + 1 :]) for d, i in enumerate(at)) for at in itertools.product(*own)]


def look_in_place(text, whole, rank, typestr):
    array = Array(text)
    said = array.__array_interface__
    shape = tuple(2 if size == 4 else size for size in whole)
    check(said == {"data": said["data"], "shape": shape, "typestr": typestr, "version": 3}, f"rank {rank}: {text}")
    address, read_only = said["data"]
    numbers = (ELEMENTS[typestr] * math.prod(shape)).from_address(address)
    check(read_only is False and list(numbers) == part_of(whole, rank), f"rank {rank}: {text} has {list(numbers)}")
    if "--numpy" in sys.argv:
        seen = numpy.asarray(array)
        check(seen.shape == shape and seen.ctypes.data == address, f"rank {rank}: NumPy has {seen.shape}")
        check(seen.ravel().tolist() == part_of(whole, rank), f"rank {rank}: NumPy has {seen}")
    numbers[3] = 77  # which the file that is written then has


def look_into_file(file, rank, typestr):
    bytes = file.read_bytes()
    begin = 10 + struct.unpack("<H", bytes[8:10])[0]
    header = ast.literal_eval(bytes[10:begin].decode())
    check(header == {"descr": typestr, "fortran_order": False, "shape": (6, 2)}, f"{file.name} has {header}")
    numbers = list(memoryview(bytes[begin:]).cast(ELEMENTS[typestr]._type_))
    expected = part_of(WHOLE[0], rank)
    expected[3] = 77
    check(numbers == expected, f"{file.name} has {numbers}")
    if "--numpy" in sys.argv:
        seen = numpy.load(file, mmap_mode="r")
        check(seen.shape == (6, 2) and seen.ravel().tolist() == expected, f"NumPy has {seen} of {file.name}")


def on_two_ranks(show, typestr):
    seen = [[], []]

    def look(rank, text):
        seen[rank].append(text)
        try:
            look_in_place(text.decode(), WHOLE[len(seen[rank]) - 1], rank, typestr)
        except Exception as error:  # or ctypes would swallow it
            failures.append(f"rank {rank}: {error!r}")

    with tempfile.TemporaryDirectory() as folder:
        show(folder.encode(), LOOK(look))
        check([len(texts) for texts in seen] == [2, 2], f"the ranks showed {seen}")
        for rank in range(2):
            look_into_file(pathlib.Path(folder) / f"{rank}.npy", rank, typestr)


def part(shape, *cuts):
    """The numbers of a part of those that count up: of each dimension the first index, and how many."""
    own = [range(first, first + count) for first, count in cuts]
    return tuple(count for _, count in cuts), [sum(i * math.prod(shape[d + 1 :]) for d, i in enumerate(at)) for at in itertools.product(*own)]


def show_parts(show, expected):
    """Of each rank its parts, one parameter behind the other."""
    seen = {}

    def look(rank, text):
        said = ast.literal_eval(text.decode())
        numbers = (ctypes.c_float * math.prod(said["shape"])).from_address(said["data"][0])
        seen.setdefault(rank, []).append((said["shape"], list(numbers)))
        if "--numpy" in sys.argv:
            array = numpy.asarray(Array(text.decode()))
            check((array.shape, array.ravel().tolist()) == seen[rank][-1], f"rank {rank}: NumPy has {array}")

    show(LOOK(look))
    check(seen == expected, f"the ranks showed {seen}, where their parts are {expected}")


def show_types(show):
    """Of each element type a single number, or why there is none."""
    room = ctypes.c_double(1.5)
    here = ctypes.addressof(room)
    said = []
    look = LOOK(lambda rank, text: said.append(text.decode()))
    for dtype in range(5):  # f32, f64, bf16, f16, i32
        show(dtype, ctypes.c_void_p(here), look)
    show(0, None, look)
    for text, typestr in zip(said, ["<f4", "<f8", None, "<f2", "<i4"]):
        if typestr:
            expected = {"data": (here, False), "shape": (), "typestr": typestr, "version": 3}
            check(ast.literal_eval(text) == expected, f"{typestr}: {text}")
    check(said[2].startswith("NumPy has no bfloat16; "), f"bfloat16: {said[2]}")
    check(said[5].startswith("a rank that has nothing of a tensor "), f"nothing: {said[5]}")


if __name__ == "__main__":
    if "--numpy" in sys.argv:
        import numpy
    library = ctypes.CDLL(sys.argv[1])
    on_two_ranks(library.show_floats, "<f4")
    on_two_ranks(library.show_doubles, "<f8")
    # the last axis of a mesh varies fastest; of a dimension that two axes cut the second cuts what the first has left
    show_parts(library.show_cut, {2 * d + t: [part((6, 4), (3 * d, 3), (2 * t, 2)), part((8, 3), (4 * d + 2 * t, 2), (0, 3))] for d in range(2) for t in range(2)})
    show_parts(library.show_flat, {0: [((8,), list(range(8)))], 1: [((8,), [*range(8, 15), 0])]})
    show_parts(library.show_stages, {stage: [part((4, 3), (2 * stage, 2), (0, 3))] for stage in range(2)})
    show_types(library.show_type)
    print("\n".join(failures) or "all parts are seen")
    sys.exit(1 if failures else 0)
