// Functions of some tensors, element by element; operands repeat as in NumPy. 16 bytes at a time where operands and
// result lie so.
#pragma once
#include <algorithm>
#include <utility>

#include <parallel/device/cpu/walk.hpp>
#include <parallel/device/cuda/body/divisor.hpp>
#include <parallel/device/cuda/body/element.hpp>
#include <parallel/device/cuda/body/launch.hpp>
#include <parallel/device/cuda/gpu.hpp>

namespace parallel::internals::cuda {

using cpu::repeated;
using cpu::strides;
using cpu::Walk;
using Steps = cpu::Steps<max_rank>;

inline bool lies_at(const void* data, std::size_t bytes) { return reinterpret_cast<std::uintptr_t>(data) % bytes == 0; }
/// Whether an update is to be left out: see Call.
PARALLEL_DEVICE inline bool skipped(const double* commit) { return commit != nullptr && *commit == 0; }

/// Runs f(i) for every i below n.
template <class F>
struct Each {
  static constexpr int threads = 256;
  F f;
  Index n;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    block.each(threads, [&](Index thread) {
      const Index i = block.index * threads + thread;
      if (i < n) f(i);
    });
  }
};
template <class F>
void launch_each(cudaStream_t stream, Index n, const F& f) {
  launch(stream, blocks_of(n, Each<F>::threads), Each<F>{f, n});
}

/// out[i] = function(in[0][...], in[1][...], ...) for packs of n elements of the innermost dimension. `Out`, `In...`:
/// element types.
template <int n, class Function, class Out, class... In>
struct Map {
  static constexpr int inputs = sizeof...(In);
  Function function;
  Out* out;
  const void* in[inputs];
  const double* commit;
  int rank;  // dimensions, the innermost last
  Divisor extent[max_rank];
  Index step[inputs][max_rank];  // in elements; the innermost step is 0 or, where n > 1, 1

  PARALLEL_DEVICE void operator()(Index pack) const {
    if (!skipped(commit)) apply(pack * n, std::make_integer_sequence<int, inputs>{});
  }

 private:
  template <int... k>
  PARALLEL_DEVICE void apply(Index first, std::integer_sequence<int, k...>) const {
    Index from[inputs]{}, rest = first;
    for (int d = rank - 1; d > 0; --d) {
      const Index here = extent[d].divide(rest);
      ((from[k] += here * step[k][d]), ...);
    }
    ((from[k] += rest * step[k][0]), ...);
    Pack<Out, n> result;
    const bool repeats[inputs]{step[k][rank - 1] == 0 ...};
    each_of(result, load<In>(static_cast<const In*>(in[k]) + from[k], repeats[k])...);
    *reinterpret_cast<Pack<Out, n>*>(out + first) = result;
  }
  template <class T>
  PARALLEL_DEVICE static Pack<T, n> load(const T* from, bool repeats) {
    Pack<T, n> all;
    if (n > 1 && repeats)
      for (T& each : all.of) each = *from;
    else
      all = *reinterpret_cast<const Pack<T, n>*>(from);
    return all;
  }
  template <class... P>
  PARALLEL_DEVICE void each_of(Pack<Out, n>& result, const P&... operands) const {
    for (int i = 0; i < n; ++i) result.of[i] = narrow<Out>(function(widen(operands.of[i])...));
  }
};

/// Applies a function to the first operands of a call, whose element types are In..., for its first result. `from`: by
/// how many elements each operand advances along the dimensions of the result.
template <class Function, class Out, class... In>
void map(const Call& call, const Function& function, const Steps (&from)[sizeof...(In)]) {
  constexpr int inputs = sizeof...(In);
  const View& out = call.results[0];
  if (out.elements() == 0) return;
  const Walk<inputs> walk = cpu::through(out, from);
  constexpr int n = static_cast<int>(16 / std::max({sizeof(Out), sizeof(In)...}));
  constexpr std::size_t sizes[inputs]{sizeof(In)...};
  const int rank = std::max(walk.rank(), 1);
  bool packed = walk.extent() % n == 0 && lies_at(out.data, n * sizeof(Out));
  for (int k = 0; k < inputs; ++k) {
    const Index last = walk.step(k);
    packed = packed && (last == 0 || (last == 1 && lies_at(call.operands[k].data, n * sizes[k])));
    for (int enclosing = 1; last == 1 && enclosing < rank; ++enclosing)
      packed = packed && walk.step(k, enclosing) % n == 0;
  }
  const auto run = [&](auto body, int in_pack) {
    body.function = function;
    body.out = out.as<Out>();
    body.commit = call.commit;
    body.rank = rank;
    for (int k = 0; k < inputs; ++k) body.in[k] = call.operands[k].data;
    for (int d = 0; d < rank; ++d) {
      body.extent[d] = Divisor(walk.extent(rank - 1 - d));
      for (int k = 0; k < inputs; ++k) body.step[k][d] = walk.step(k, rank - 1 - d);
    }
    launch_each(gpu(call).stream(), out.elements() / in_pack, body);
  };
  packed ? run(Map<n, Function, Out, In...>{}, n) : run(Map<1, Function, Out, In...>{}, 1);
}

/// The same for operands that repeat as in NumPy.
template <class Function, class Out, class... In>
void map(const Call& call, const Function& function) {
  Steps from[sizeof...(In)];
  for (int k = 0; k < static_cast<int>(sizeof...(In)); ++k) from[k] = repeated(call.operands[k], call.results[0]);
  map<Function, Out, In...>(call, function, from);
}

}  // namespace parallel::internals::cuda
