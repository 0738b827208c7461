// What a device takes beside the tensors of a plan: constants that it states, and keeps to.
#pragma once
#include <parallel/graph/graph.hpp>

namespace parallel::internals {

namespace account {

/// A rank's part of an operand or a result, as far as it decides how much memory a kernel needs.
struct Part {
  DType dtype = DType::f32;
  List<std::int64_t, max_rank> size{};

  /// The product of the extents of dimensions [first, last).
  constexpr std::int64_t extent(int first, int last) const {
    std::int64_t n = 1;
    for (int d = first; d < last; ++d) n *= size[d];
    return n;
  }
  constexpr int rank() const { return size.size(); }
  constexpr std::int64_t elements() const { return extent(0, rank()); }
};

/// One call of a kernel, as far as it decides how much memory it needs.
struct Extents {
  std::string_view operation;
  List<Part, max_node_operands> operands{};
  List<Part, max_results> results{};
  Ints ints{};
};

/// Bytes that kernels work in. A device may keep several pieces apart; each grows to the most that a call needs of it.
struct Scratch {
  std::int64_t pieces[6]{};

  constexpr void grow(const Scratch& other) {
    for (int p = 0; p < 6; ++p) pieces[p] = other.pieces[p] > pieces[p] ? other.pieces[p] : pieces[p];
  }
  constexpr std::int64_t bytes() const {
    std::int64_t all = 0;
    for (const std::int64_t p : pieces) all += p;
    return all;
  }
};

/// Bytes of a rank beside its tensors.
struct Taken {
  std::int64_t rounding = 0;  ///< by which blocks are larger than what lies in them: huge pages
  std::int64_t scratch = 0;   ///< in which kernels work, at most
};

}  // namespace account

/// What a device says of itself. It holds on every machine: a kernel may be tuned within it.
struct DeviceAccount {
  std::string_view device;
  std::int64_t (*block)(std::int64_t bytes);                  ///< what a block of so many bytes takes
  account::Scratch (*scratch)(const account::Extents& call);  ///< what the kernel of a call works in, at most
  bool is_host = false;                                       ///< its memory is that of the rank's host
  /// what operand 1 of a call takes as its kernel reads it, where that may be kept for the next such call; else 0
  std::int64_t (*packed)(const account::Extents& call) = nullptr;
};

}  // namespace parallel::internals
