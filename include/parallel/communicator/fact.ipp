// How facts are hashed and read; fact.hpp says what they are.
#pragma once
#include <cstdio>

#include <parallel/communicator/fact.hpp>

namespace parallel::internals {

PARALLEL_INLINE Fact fact(std::string what, std::string_view value) {
  agreeing::Hash hash;
  hash.name(value);
  return {std::move(what), hash.value(), [text = std::string(value)] { return text; }};
}
PARALLEL_INLINE Fact fact(std::string what, double value) {
  agreeing::Hash hash;
  hash.number(value);
  agreeing::Text text;
  text.number(value);
  return {std::move(what), hash.value(), [words = text.value()] { return words; }};
}

PARALLEL_INLINE Fact fact_of_bytes(std::string what, std::span<const std::byte> bytes, std::size_t size) {
  constexpr std::size_t page = 4096, pages = 64;
  agreeing::Hash hash;
  hash.word(static_cast<std::int64_t>(bytes.size()));
  hash.word(static_cast<std::int64_t>(size));
  const bool sampled = bytes.size() > page * pages;  // from the first page to the last
  for (std::size_t i = 0; i < pages; ++i) {
    const std::size_t begin = std::min(bytes.size(), sampled ? (bytes.size() - page) * i / (pages - 1) : page * i);
    hash.bytes(bytes.subspan(begin, std::min(page, bytes.size() - begin)));
  }
  char text[80];
  std::snprintf(text, sizeof text, "%zu elements of %zu bytes, hash %016llx", bytes.size() / size, size,
                static_cast<unsigned long long>(hash.value()));
  return {std::move(what), hash.value(), [words = std::string(text)] { return words; }};
}

}  // namespace parallel::internals
