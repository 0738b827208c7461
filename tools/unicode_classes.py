#!/usr/bin/env python3
"""Writes include/parallel/file/unicode_classes.hpp: which characters are letters, numbers and white space.

    tools/unicode_classes.py         needs tokenizers 0.23

Asked is Hugging Face's library itself, character by character, as tokenizers must split texts where it does."""
import pathlib

from tokenizers import pre_tokenizers

HEADER = pathlib.Path(__file__).resolve().parent.parent / "include/parallel/file/unicode_classes.hpp"
CLASSES = {"letter": "a", "number": "1", "other": "!"}  # what one of the class is not parted from

TOP = """// Letters, numbers and white space of Unicode 16.0. Written by tools/unicode_classes.py; not to be changed by hand.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>

namespace parallel::internals {

/// \\\\p{L}, \\\\p{N} and \\\\s of regular expressions, and all else.
enum class CharacterClass : std::uint8_t { other, letter, number, space };

/// Where a class begins, times four, and the class; it ends where the next begins.
inline constexpr std::uint32_t character_classes[] = {
    // clang-format off
"""
BOTTOM = """    // clang-format on
};

constexpr CharacterClass class_of(char32_t character) {
  const auto* const next = std::upper_bound(std::begin(character_classes), std::end(character_classes), character << 2 | 3);
  return static_cast<CharacterClass>(*(next - 1) & 3);
}

}  // namespace parallel::internals
"""


def main():
    split = pre_tokenizers.ByteLevel(add_prefix_space=False).pre_tokenize_str
    number = {"other": 0, "letter": 1, "number": 2, "space": 3}
    words, before = [], None
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue  # no characters
        name = next((n for n, one in CLASSES.items() if len(split(one + chr(code))) == 1), "space")
        if name != before:
            words.append(f"{code << 2 | number[name]:#x},")
        before = name
    lines, line = [], "   "
    for word in words:
        if len(line) + 1 + len(word) > 120:
            lines, line = lines + [line], "   "
        line += " " + word
    HEADER.write_text(TOP.replace("\\\\", "\\") + "\n".join(lines + [line]) + "\n" + BOTTOM)


if __name__ == "__main__":
    main()
