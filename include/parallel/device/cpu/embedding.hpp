// Rows of a table by index, and their gradients added up. A rank may hold some of the rows: others are zeros, and are
// skipped backward.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include <parallel/device/cpu/array.hpp>
#include <parallel/device/cpu/parts.hpp>
#include <parallel/device/cpu/scratch.hpp>
#include <parallel/device/cpu/team.hpp>

namespace parallel::internals::cpu {

/// Calls body(position, row of the rank's part) for the indices [begin, end); row is -1 where another rank holds it.
template <class Body>
void each_row(const View& index, const View& table, Index begin, Index end, Body body) {
  const int* const indices = index.as<const int>();
  for (Index i = begin; i < end; ++i) {
    const Index row = indices[i] - table.offset[0];
    body(i, row >= 0 && row < table.size[0] ? row : -1);
  }
}
/// (index, table)
template <class T>
void embedding(const Call& call) {
  const View& table = call.operands[1];
  const Index n = table.size[1], count = call.operands[0].elements();
  const auto of_index = [&](Index i, Index row) {
    T* to = call.results[0].as<T>() + i * n;
    const int index = call.operands[0].as<const int>()[i];
    if (index < 0 || index >= table.whole[0])
      std::fill(to, to + n, std::numeric_limits<T>::quiet_NaN());  // so that it shows in the loss, on every rank
    else if (row < 0)
      std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(T));
    else
      std::memcpy(to, table.as<const T>() + row * n, static_cast<std::size_t>(n) * sizeof(T));
  };
  each_part(team_for_elements(call, count * n), count, 1,
            [&](Index begin, Index end) { each_row(call.operands[0], table, begin, end, of_index); });
}
/// (index, g): the rows of g added up by index, in the order of the indices.
template <class T>
void embedding_gradient(const Call& call) {
  const View& table = call.results[0];
  const Index n = table.size[1], count = call.operands[0].elements();
  zero(table, team_for_elements(call, table.elements()));
  each_part(team_for_elements(call, count * n), n, 64, [&](Index begin, Index end) {
    each_row(call.operands[0], table, 0, count, [&](Index i, Index row) {
      if (row >= 0)
        add_to(table.as<T>() + row * n + begin, call.operands[1].as<const T>() + i * n + begin, end - begin);
    });
  });
}

/// (sum, index, g): the rows of g added up by index, in the order of the indices, and then to sum, in its storage: what
/// the sum of it and of the gradient above would have. Positions are sorted by the row that they name.
template <class T>
void accumulate_rows(const Call& call) {
  const View &table = call.results[0], &index = call.operands[1];
  const Index n = table.size[1];
  constexpr int low = 32;  // bits of a position, behind those of a row
  const auto room = account::cpu::rows_to_add(index.elements(), n, sizeof(T));
  auto* const places =
      reinterpret_cast<std::int64_t*>(scratch_bytes<Purpose::rows>(static_cast<std::size_t>(room.bytes())));
  Index found = 0;
  each_row(index, table, 0, index.elements(), [&](Index i, Index row) {
    if (row >= 0) places[found++] = row << low | i;
  });
  std::sort(places, places + found);
  const T* const g = call.operands[2].as<const T>();
  each_part(team_for_elements(call, found * n), n, 64, [&](Index begin, Index end) {
    std::byte* const own = scratch_bytes<Purpose::rows>(static_cast<std::size_t>(room.bytes()));
    T* const sum = reinterpret_cast<T*>(own + room.places);
    const auto row_of = [&](Index at) { return places[at] >> low; };
    const auto given = [&](Index at) { return g + (places[at] & ((Index{1} << low) - 1)) * n + begin; };
    for (Index first = 0, last = 0; first < found; first = last) {
      const Index row = row_of(first);
      for (last = first + 1; last < found && row_of(last) == row; ++last) {
      }
      const T* from = given(first);
      if (last - first > 1) {
        std::copy_n(from, end - begin, sum);
        for (Index at = first + 1; at < last; ++at) add_to(sum, given(at), end - begin);
        from = sum;
      }
      add_to(table.as<T>() + row * n + begin, from, end - begin);
    }
  });
}

}  // namespace parallel::internals::cpu
