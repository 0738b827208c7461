// What the CPU takes beside the tensors of a plan: large blocks come in huge pages, and products, convolutions,
// attention, gradients of embeddings, bf16 and f16 work in memory of their own.
#pragma once
#include <parallel/account/account.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/convolution.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/optimizing.hpp>
#include <parallel/operation/rotary.hpp>
#include <parallel/operation/update.hpp>

namespace parallel::internals::account {

inline constexpr std::int64_t line = 64;
inline constexpr std::int64_t huge_page = 2 << 20;
inline constexpr std::int64_t in_huge_pages = 4 << 20;  ///< blocks of so many bytes and more lie in huge pages
constexpr std::int64_t whole(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit * unit; }
/// What a block begins at, and is a multiple of.
constexpr std::int64_t page_of(std::int64_t bytes) { return bytes >= in_huge_pages ? huge_page : line; }
constexpr std::int64_t block_on_cpu(std::int64_t bytes) { return whole(bytes, page_of(bytes)); }

namespace cpu {

/// What scratch memory is for: pieces of different purposes are in use at the same time.
enum class Purpose : std::uint8_t { packing, scores, angles, widened, unfolded, rows };

/// How a product is cut. A panel of the right operand, as wide as the registers and as deep as a tile, has 36 KiB with
/// AVX-512 and 18 with AVX2, for first caches of 48 and of 32; a tile of it stays in the second cache, and rows are so
/// few that their results are added to again before much else has passed it. Extents are of equal parts of at most
/// `most`, rounded up to whole registers.
constexpr std::int64_t even(std::int64_t extent, std::int64_t most, std::int64_t unit) {
  const std::int64_t parts = (extent + most - 1) / most;
  return parts == 0 ? 0 : whole((extent + parts - 1) / parts, unit);
}
inline constexpr std::int64_t most_depth = 192, depth_unit = 8;
constexpr std::int64_t most_columns(std::int64_t element) { return 768 / element; }
constexpr std::int64_t most_rows(std::int64_t element) { return 2048 / element; }
/// Multiples of what is in registers at once, on every machine.
constexpr std::int64_t column_unit(std::int64_t element) { return 192 / element; }
inline constexpr std::int64_t row_unit = 8;

/// How deep rows of the left operand are packed at once: several depths, so that results are added to again soon.
constexpr std::int64_t packed_depth(std::int64_t depth) { return 4 * depth; }
/// A side of a product, or what it is at most.
struct Side {
  std::int64_t n = 0;
  bool at_most = false;

  constexpr std::int64_t part(std::int64_t most, std::int64_t unit) const {
    return at_most ? whole(n < most ? n : most, unit) : even(n, most, unit);
  }
};
/// A product [m, k] times [k, n] packs a tile of its right operand and some rows of its left one.
constexpr std::int64_t packing_of_product(Side m, Side n, Side k, std::int64_t element) {
  if (m.n == 0 || n.n == 0 || k.n == 0) return 0;
  const auto at_most = [](std::int64_t part, std::int64_t all) { return part < all ? part : all; };
  const std::int64_t rows = at_most(m.part(most_rows(element), row_unit), m.n),
                     columns = at_most(n.part(most_columns(element), column_unit(element)), n.n),
                     depth = k.part(most_depth, depth_unit);
  return whole(columns * depth * element, line) + rows * at_most(packed_depth(depth), k.n) * element;
}

/// The sides of a call (x, w) -> y of matmul, and how many products it is; none of what only a file may say.
struct SidesOfProduct {
  std::int64_t batch = 0, m = 0, n = 0, k = 0;
};
constexpr SidesOfProduct sides_of_product(const Extents& call) {
  const Part &x = call.operands[0], &y = call.results[0];
  const operation::Product p(call.ints);
  const int free = x.rank() - p.batch - p.contracted;
  if (p.batch < 0 || p.contracted < 0 || free < 0 || p.batch + free > y.rank()) return {};
  return {x.extent(0, p.batch), y.extent(p.batch, p.batch + free), y.extent(p.batch + free, y.rank()),
          p.left_transposed ? x.extent(p.batch, p.batch + p.contracted) : x.extent(x.rank() - p.contracted, x.rank())};
}
/// Bytes of a product's right operand in tiles, one behind the other, of which each begins where the kernel's widest
/// loads can: 0 where some would not, in halves, and where there are as many rows as columns, beside which packing is
/// little.
constexpr std::int64_t packed_weight(const Extents& call) {
  if (call.operation != operation::matmul.name || call.operands.size() != 2 || call.results.size() != 1) return 0;
  const DType type = call.results[0].dtype;
  if (is_half(type) || call.operands[0].dtype != type || call.operands[1].dtype != type) return 0;
  const std::int64_t element = bytes_of(type);
  const SidesOfProduct s = sides_of_product(call);
  if (s.m >= s.n || depth_unit * s.n * element % line != 0 || s.k * s.n * element % line != 0) return 0;
  return s.batch * s.k * s.n * element;
}

/// Attention has the scores of so many queries and keys at a time, which stay in the second cache; where it is causal,
/// those of so many queries up to the keys that the last of them sees, in as many keys at a time.
inline constexpr std::int64_t most_keys = 384, queries_at_once = 64, queries_alike = 16;
constexpr std::int64_t keys_at_once(std::int64_t keys) { return keys < 1 ? 1 : keys < most_keys ? keys : most_keys; }
/// A convolution unfolds so many elements of windows, at so many places, at a time.
inline constexpr std::int64_t most_unfolded = 384, most_places = 768;
/// Rows that are added to a table, of so many elements each: where they stand, sorted, and behind it room for a sum of
/// several.
struct RowsToAdd {
  std::int64_t places = 0, sum = 0;  ///< bytes
  constexpr std::int64_t bytes() const { return places + sum; }
};
constexpr RowsToAdd rows_to_add(std::int64_t rows, std::int64_t elements, std::int64_t element) {
  return {whole(rows * 8, line), whole(elements * element, line)};
}
/// Elements that a tensor of bf16 or f16 takes as float: whole cache lines.
constexpr std::int64_t room_of_widened(std::int64_t elements) { return whole(elements, 16); }

/// Updates that go element by element are computed in pieces where their states are bf16.
inline constexpr std::int64_t most_widened = 4096;
constexpr bool updates_in_pieces(std::string_view operation) {
  for (const Operation* o : {&operation::momentum, &operation::nesterov, &operation::adam, &operation::adamw,
                             &operation::lion, &operation::adafactor_mean, &operation::adafactor_squares,
                             &operation::muon_momentum, &operation::muon_direction})
    if (operation == o->name) return true;
  return false;
}

/// By Purpose.
constexpr Scratch scratch_of(const Extents& call) {
  Scratch s;
  const auto of = [&](Purpose p) -> std::int64_t& { return s.pieces[static_cast<int>(p)]; };
  if (call.results.empty() || call.operands.empty()) return s;
  const auto widen = [&](const Part& part) {
    std::int64_t elements = part.elements();
    if (updates_in_pieces(call.operation) && elements > most_widened) elements = most_widened;
    if (is_half(part.dtype)) of(Purpose::widened) += 4 * room_of_widened(elements);
  };
  for (const Part& part : call.operands) widen(part);
  for (const Part& part : call.results) widen(part);
  const Part& first = call.operands[0];
  const std::int64_t element = call.results[0].dtype == DType::f64 ? 8 : 4;
  if (call.operation == operation::matmul.name) {
    const SidesOfProduct sides = sides_of_product(call);
    of(Purpose::packing) = packing_of_product({sides.m}, {sides.n}, {sides.k}, element);
  } else if (call.operation == operation::attention.name || call.operation == operation::attention_derivative.name) {
    if (first.rank() != 4 || call.operands.size() < 3 || call.operands[1].rank() != 4 || call.operands[2].rank() != 4)
      return s;
    const bool back = call.operation == operation::attention_derivative.name;
    const std::int64_t scores = (back ? 2 : 1) * keys_at_once(call.operands[1].size[1]),
                       transposed = first.size[3] + (back ? call.operands[2].size[3] : 0);
    of(Purpose::scores) = queries_at_once * (scores + transposed) * element;
  } else if (const bool back = call.operation == operation::transposed_convolution.name,
             of_weight = call.operation == operation::convolution_weight.name;
             back || of_weight || call.operation == operation::convolution.name) {
    const Part &weight = of_weight                  ? call.results[0]
                         : call.operands.size() > 1 ? call.operands[1]
                                                    : first,
               &y = back                                    ? first
                    : of_weight && call.operands.size() > 1 ? call.operands[1]
                                                            : call.results[0];
    if (weight.rank() < 3 || y.rank() < 3) return s;
    const std::int64_t depth = weight.extent(1, weight.rank()), all = y.extent(2, y.rank());
    const Side out{weight.size[0]}, rows{depth < most_unfolded ? depth : most_unfolded, true},
        places{all < most_places ? all : most_places, true};
    of(Purpose::unfolded) = rows.n * places.n * element;
    of(Purpose::packing) = back        ? packing_of_product(rows, places, out, element)
                           : of_weight ? packing_of_product(out, rows, places, element)
                                       : packing_of_product(out, places, rows, element);
  } else if (call.operation == operation::accumulate_rows.name && first.rank() == 2 && call.operands.size() == 3) {
    of(Purpose::rows) = rows_to_add(call.operands[1].elements(), first.size[1], element).bytes();
  } else if (call.operation == operation::rotary.name && first.rank() == 4) {
    of(Purpose::angles) = whole(first.size[3] / 2 * 2 * element, line);
  }
  return s;
}

}  // namespace cpu

/// The CPU's; its kernels' scratch is one of each thread, so of each rank that has one.
inline constexpr DeviceAccount on_cpu{"CPU", block_on_cpu, cpu::scratch_of, true, cpu::packed_weight};

}  // namespace parallel::internals::account
