// Rotary position embedding.
#pragma once
#include <cmath>

#include <parallel/device/cuda/body/row.hpp>

namespace parallel::internals::cuda {

/// A block turns all heads of a position in some samples by the same angles.
template <class T>
struct Rotary {
  static constexpr int threads = 128, samples = 8, n = pack_elements<T>;
  using W = Wide<T>;
  const T* x;
  T* out;
  const int* position;  ///< of the first row of all ranks, or none
  Index batch, rows, heads, half, first;
  Standing standing;
  bool packed;
  double base, direction;

  template <class Block>
  PARALLEL_DEVICE void operator()(Block& block) const {
    const Index row = block.index % rows, sample = block.index / rows * samples,
                end = sample + samples < batch ? sample + samples : batch;
    W* const cosine = block.template shared<W>();
    W* const sine = cosine + half;
    const double stands = static_cast<double>(standing.element(first + row) + (position != nullptr ? *position : 0));
    block.each(half, [&](Index i) {
      const double angle = stands * std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      cosine[i] = static_cast<W>(std::cos(angle));
      sine[i] = static_cast<W>(direction * std::sin(angle));
    });
    block.sync();
    const Index packs = (half + n - 1) / n;
    either(packed, [&](auto whole) {
      block.each((end - sample) * heads * packs, [&](Index i) {
        constexpr bool at_once = decltype(whole)::value;
        const Index pack = i % packs, head = i / packs % heads, b = sample + i / packs / heads,
                    from = ((b * rows + row) * heads + head) * 2 * half, at = pack * n;
        const auto low = Row<T>{x + from}.template pack<n, at_once>(at, half),
                   high = Row<T>{x + from + half}.template pack<n, at_once>(at, half);
        Some<W, n> turned_low{}, turned_high{};
        for (int e = 0; e < n; ++e) {
          if (at + e >= half) continue;
          const W c = cosine[at + e], s = sine[at + e];
          turned_low.of[e] = low.of[e] * c - high.of[e] * s;
          turned_high.of[e] = high.of[e] * c + low.of[e] * s;
        }
        if constexpr (at_once) {
          store(out + from + at, turned_low);
          store(out + from + half + at, turned_high);
        } else {
          for (int e = 0; e < n && at + e < half; ++e) {
            out[from + at + e] = narrow<T>(turned_low.of[e]);
            out[from + half + at + e] = narrow<T>(turned_high.of[e]);
          }
        }
      });
    });
  }
};
/// (x, position): at a position elements i and i + size/2 turn by the angle of the pair. Floor: 2 + 2 bytes per element
/// in bf16.
template <class T>
void rotary(const Call& call) {
  using Body = Rotary<T>;
  const View &x = call.operands[0], &out = call.results[0];
  if (x.elements() == 0) return;
  const Index half = x.size[3] / 2;
  const bool packed = half % Body::n == 0 && lies_at(x.data, 16) && lies_at(out.data, 16);
  const int* const position = call.operands.size() > 1 ? call.operands[1].as<const int>() : nullptr;
  launch(gpu(call).stream(), blocks_of(x.size[0], Body::samples) * x.size[1],
         Body{x.as<const T>(), out.as<T>(), position, x.size[0], x.size[1], x.size[2], half, x.offset[1], x.standing(1),
              packed, call.reals[0], call.reals[1]},
         static_cast<std::size_t>(2 * half) * sizeof(Wide<T>));
}

}  // namespace parallel::internals::cuda
