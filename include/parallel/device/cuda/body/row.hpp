// Rows of tensors: how a warp or a block goes along one, 16 bytes at a time, and how rows become a grid. A sum along a
// row has the same bits wherever the row lies.
#pragma once
#include <parallel/device/cuda/body/map.hpp>
#include <parallel/device/cuda/body/tile.hpp>

namespace parallel::internals::cuda {

/// Some numbers of type W in registers.
template <class W, int n>
struct Some {
  W of[n];
};

/// n consecutive elements, widened, that lie at a multiple of the bytes that are read at once.
template <int n, class T>
PARALLEL_DEVICE Some<Wide<T>, n> load(const T* from) {
  constexpr int at_once = n < pack_elements<T> ? n : pack_elements<T>;
  Some<Wide<T>, n> all;
  for (int i = 0; i < n; i += at_once) {
    const auto some = *reinterpret_cast<const Pack<T, at_once>*>(from + i);
    for (int j = 0; j < at_once; ++j) all.of[i + j] = widen(some.of[j]);
  }
  return all;
}
template <int n, class T>
PARALLEL_DEVICE void store(T* to, const Some<Wide<T>, n>& all) {
  constexpr int at_once = n < pack_elements<T> ? n : pack_elements<T>;
  for (int i = 0; i < n; i += at_once) {
    Pack<T, at_once> some;
    for (int j = 0; j < at_once; ++j) some.of[j] = narrow<T>(all.of[i + j]);
    *reinterpret_cast<Pack<T, at_once>*>(to + i) = some;
  }
}

/// Rows of a tensor along one dimension, read in packs of n elements.
struct Rows {
  Index count;      ///< rows
  Index length;     ///< elements of each
  Index inner = 1;  ///< from element to element; so many rows lie in each other
  bool packed = false;

  /// Of a part along a dimension. `packed`: where every row of it begins at a multiple of n elements, and all addresses
  /// at multiples of 16.
  template <int n, class... Views>
  static Rows of(const View& x, int dim, const Views&... others) {
    const Index inner = x.extent(dim + 1, x.rank), length = x.size[dim];
    return {x.extent(0, dim) * inner, length, inner,
            inner == 1 && length % n == 0 && (lies_at(x.data, 16) && ... && lies_at(others.data, 16))};
  }
  PARALLEL_DEVICE Index begin(Index row) const {
    return inner == 1 ? row * length : row / inner * length * inner + row % inner;
  }
  template <int n>
  PARALLEL_DEVICE Index packs() const {
    return blocks_of(length, n);
  }
};

/// A row of elements, `step` apart. `pack` of the operands of sums and maps: elements [first, first + n), of which
/// those below length.
template <class T>
struct Row {
  const T* data;
  Index step = 1;

  template <int n, bool packed>
  PARALLEL_DEVICE Some<Wide<T>, n> pack(Index first, Index length) const {
    if constexpr (packed) {
      return load<n>(data + first);
    } else {
      Some<Wide<T>, n> all;
      for (int e = 0; e < n; ++e) all.of[e] = first + e < length ? widen(data[(first + e) * step]) : Wide<T>{0};
      return all;
    }
  }
};
/// Numbers of type W, or of bf16 or f16 where they are stored so: gains, statistics.
template <class W>
struct Reals {
  const void* data = nullptr;
  DType dtype = dtype_of<W>;

  static Reals of(const View& view) { return {view.data, view.dtype}; }
  PARALLEL_DEVICE W operator[](Index i) const {
    return dtype == DType::bf16  ? static_cast<W>(widen(static_cast<const bfloat16*>(data)[i]))
           : dtype == DType::f16 ? static_cast<W>(widen(static_cast<const float16*>(data)[i]))
                                 : static_cast<const W*>(data)[i];
  }
  template <int n, bool packed>
  PARALLEL_DEVICE Some<W, n> pack(Index first, Index length) const {
    if constexpr (packed) {
      if constexpr (std::is_same_v<W, float>) {
        if (dtype == DType::bf16) return load<n>(static_cast<const bfloat16*>(data) + first);
        if (dtype == DType::f16) return load<n>(static_cast<const float16*>(data) + first);
      }
      return load<n>(static_cast<const W*>(data) + first);
    } else {
      Some<W, n> all;
      for (int e = 0; e < n; ++e) all.of[e] = first + e < length ? (*this)[first + e] : W{0};
      return all;
    }
  }
};

/// f(std::true_type) or f(std::false_type).
template <class F>
PARALLEL_DEVICE auto either(bool which, F f) {
  return which ? f(std::true_type{}) : f(std::false_type{});
}

/// The sum of f(x...) over the first `length` elements of a row.
template <class Sum, int n, class Block, class F, class... Operands>
PARALLEL_DEVICE Sum sum_along(const Block& block, const Rows& rows, Index length, F f, const Operands&... operands) {
  return either(rows.packed, [&](auto packed) {
    constexpr int ahead = decltype(packed)::value ? 4 : 1;
    return block.template sum<Sum, ahead>(blocks_of(length, n), [&](Index p) {
      const auto of_pack = [&](const auto&... x) {
        Sum sum{};
        for (int e = 0; e < n; ++e)
          if (p * n + e < length) sum = sum + f(x.of[e]...);
        return sum;
      };
      return of_pack(operands.template pack<n, decltype(packed)::value>(p * n, length)...);
    });
  });
}
/// out[i] = f(i, x...) for every element of a row.
template <int n, class Block, class Out, class F, class... Operands>
PARALLEL_DEVICE void map_along(const Block& block, const Rows& rows, Out* out, F f, const Operands&... operands) {
  either(rows.packed, [&](auto packed) {
    block.template each<decltype(packed)::value ? 2 : 1>(rows.packs<n>(), [&](Index p) {
      const Index first = p * n;
      const auto of_pack = [&](const auto&... x) {
        Some<Wide<Out>, n> all;
        for (int e = 0; e < n; ++e) all.of[e] = f(first + e, x.of[e]...);
        if constexpr (decltype(packed)::value)
          store(out + first, all);
        else
          for (int e = 0; e < n; ++e)
            if (first + e < rows.length) out[(first + e) * rows.inner] = narrow<Out>(all.of[e]);
      };
      of_pack(operands.template pack<n, decltype(packed)::value>(first, rows.length)...);
    });
  });
}

/// Has a row copied to shared memory, from where it is read when `copies` have been waited for: each thread what it
/// reads itself, so nobody waits for the others.
template <int n, class Group, class T>
PARALLEL_DEVICE Row<T> copied_row(const Group& group, Copies& copies, const Rows& rows, const Row<T>& row, T* room) {
  group.each(rows.packs<n>(), [&](Index p) {
    if (rows.packed)
      copies.add(room + p * n, row.data + p * n, true);
    else
      for (Index i = p * n; i < (p + 1) * n && i < rows.length; ++i) room[i] = row.data[i * row.step];
  });
  return {room};
}

/// Blocks whose warps have a row each, and so many bytes of shared memory.
template <class Body>
struct ByWarps {
  static constexpr int threads = 256, warps = threads / Warp::threads;
  Body body;
  Index rows;
  std::size_t shared;
  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each_warp(
        [&](const Warp& warp) {
          if (warp.index < rows) body(warp);
        },
        shared);
  }
};
/// Whether a row of so many packs is short enough for a warp; a longer one is a block's.
inline bool by_warp(Index packs) { return packs <= 8 * Warp::threads; }
/// Runs a body for every row, with so many bytes of shared memory for each.
template <class Body>
void launch_rows(const Call& call, Index rows, Index packs, const Body& body, std::size_t shared = 0) {
  if (by_warp(packs))
    launch(gpu(call).stream(), blocks_of(rows, ByWarps<Body>::warps), ByWarps<Body>{body, rows, shared},
           ByWarps<Body>::warps * shared);
  else
    launch(gpu(call).stream(), rows, body, shared);
}
/// For every one of the body's rows.
template <class Body>
void launch_rows(const Call& call, const Body& body) {
  launch_rows(call, body.rows.count, body.rows.template packs<Body::n>(), body);
}

/// f(T{}) with the type of elements from which a statistic of type S is made: a float is one of bf16 and f16, too.
template <class S, class F>
void with_element(DType dtype, F f) {
  if constexpr (std::is_same_v<S, float>) {
    if (dtype == DType::bf16) return f(bfloat16{});
    if (dtype == DType::f16) return f(float16{});
  }
  f(S{});
}

}  // namespace parallel::internals::cuda
