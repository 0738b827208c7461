// Rows of a table by index, and their gradients added up. A rank may hold some of the rows: others are zeros, and are
// skipped backward.
#pragma once
#include <algorithm>
#include <cstring>
#include <limits>

#include <parallel/device/cpu/array.hpp>

namespace parallel::internals::cpu {

/// Calls body(position, row of the rank's part) for every index; row is -1 where another rank holds it.
template <class Body>
void each_row(const View& index, const View& table, Body body) {
  const Index n = index.elements();
  const int* const indices = index.as<const int>();
  for (Index i = 0; i < n; ++i) {
    const Index row = indices[i] - table.offset[0];
    body(i, row >= 0 && row < table.size[0] ? row : -1);
  }
}
/// (index, table)
template <class T>
void embedding(const Call& call) {
  const View& table = call.operands[1];
  const Index n = table.size[1];
  each_row(call.operands[0], table, [&](Index i, Index row) {
    T* to = call.results[0].as<T>() + i * n;
    const int index = call.operands[0].as<const int>()[i];
    if (index < 0 || index >= table.whole[0])
      std::fill(to, to + n, std::numeric_limits<T>::quiet_NaN());  // so that it shows in the loss, on every rank
    else if (row < 0)
      std::memset(to, 0, static_cast<std::size_t>(n) * sizeof(T));
    else
      std::memcpy(to, table.as<const T>() + row * n, static_cast<std::size_t>(n) * sizeof(T));
  });
}
/// (index, g): the rows of g added up by index, in the order of the indices.
template <class T>
void embedding_gradient(const Call& call) {
  const View& table = call.results[0];
  const Index n = table.size[1];
  set(table.as<T>(), table.elements(), T{0});
  each_row(call.operands[0], table, [&](Index i, Index row) {
    if (row >= 0) add_to(table.as<T>() + row * n, call.operands[1].as<const T>() + i * n, n);
  });
}

}  // namespace parallel::internals::cpu
