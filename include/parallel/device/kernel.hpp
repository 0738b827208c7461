// What a kernel gets: the rank's parts of its operands and results, told where they lie in the full tensors.
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <type_traits>

#include <parallel/graph/graph.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel::internals {

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_element_type(DType is, DType taken) {
  const auto word = [&] {
    switch (is) {
      case DType::f64: return "double";
      case DType::bf16: return "bfloat16";
      case DType::f16: return "float16";
      case DType::i32: return "int";
      default: return "float";
    }
  };
  throw Failure("a view of " + std::string(name_of(is)) + " is read as " + std::string(name_of(taken)) +
                    "; read it by span<" + word() + ">() or as<" + word() +
                    ">(), a kernel, which is chosen by its first result, every other view as what View::dtype says",
                exit_code::internal);
}

template <class T>
inline constexpr bool is_byte =
    std::is_same_v<T, char> || std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>;

/// A rank's part of a tensor: contiguous, the last dimension varying fastest. It begins at a multiple of 64 bytes, so
/// that vectorised loops split alike, and give the same bits, in every run; a slice of an iteration need not. One
/// dimension more than a tensor has: Position::part.
struct View {
  void* data = nullptr;
  DType dtype = DType::f32;
  int rank = 0;
  std::int64_t size[max_rank + 1]{};    ///< extents of the part
  std::int64_t offset[max_rank + 1]{};  ///< where the part begins in the full tensor
  /// extents of the full tensor; of a share of a flat view where the rank's elements end, behind which is padding
  std::int64_t whole[max_rank + 1]{};

  /// how the dimensions of the full tensor stand, and for how many ranks: `at`
  Order order[max_rank + 1]{};
  int ranks[max_rank + 1]{};

  /// How dimension d of the full tensor stands.
  Standing standing(int d) const { return {order[d], whole[d], ranks[d] > 1 ? ranks[d] : 1}; }
  /// Which element of dimension d of the full tensor stands at index i of the part.
  std::int64_t at(int d, std::int64_t i) const { return standing(d).element(offset[d] + i); }
  /// How many indices from i on have elements that stand beside each other in the full tensor too.
  std::int64_t run(int d, std::int64_t i) const { return std::min(standing(d).run(offset[d] + i), size[d] - i); }
  /// How many indices of a part within one rank's slice have elements before one.
  std::int64_t below(int d, std::int64_t element) const { return standing(d).below(offset[d], size[d], element); }

  /// The elements. Throws Failure where T is an element type, and not the view's; bytes are of any, and a struct of a
  /// kernel's own is what it lays into them.
  template <class T>
  T* as() const {
    using Element = std::remove_const_t<T>;
    static_assert(
        is_element_type<Element> || !std::is_arithmetic_v<Element> || is_byte<Element>,
        "parallel: a view is read as numbers that no tensor has; its elements are float, double, int, bfloat16 "
        "or float16: write as<int>() of whole numbers, indices and targets among them");
    if constexpr (is_element_type<Element>) {
      constexpr DType taken = dtype_of<Element>;
      if (dtype != taken) refuse_element_type(dtype, taken);
    }
    return static_cast<T*>(data);
  }
  /// All of them, one behind the other; none where this rank has nothing of the tensor.
  template <class T>
  std::span<T> span() const {
    static_assert(
        sizeof(T) > 1,
        "parallel: a view has as many elements as its tensor, which are no bytes; write as<std::byte>() and bytes()");
    return {as<T>(), data == nullptr ? 0 : static_cast<std::size_t>(elements())};
  }
  /// Refused.
  template <class Index>
  float operator[](const Index&) const {
    static_assert(sizeof(Index) == 0,
                  "parallel: a view does not know its elements' type; write view.span<float>()[0], "
                  "or output_scalar(name) for a single number");
    return 0;
  }
  template <class None = void>
  float* begin() const {
    static_assert(sizeof(None*) == 0,
                  "parallel: a view does not know its elements' type; write for (float x : view.span<float>())");
    return nullptr;
  }
  template <class None = void>
  float* end() const {
    return nullptr;
  }
  std::int64_t elements() const { return extent(0, rank); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements() * bytes_of(dtype)); }
  /// The product of the extents of dimensions [first, last).
  std::int64_t extent(int first, int last) const {
    std::int64_t n = 1;
    for (int d = first; d < last; ++d) n *= size[d];
    return n;
  }
};

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_view(const char* list, int asked, int count) {
  throw Failure("a kernel asks for call." + std::string(list) + "[" + std::to_string(asked) + "], but has " +
                    std::to_string(count) + " there, counted from 0; it has the operands that the operation is " +
                    "applied to, and a result for each type that its .shape gives",
                exit_code::internal);
}
/// The operands or the results of a call. Throws Failure for one that it has not.
template <int capacity, bool given>
struct Views : List<View, capacity> {
  using List<View, capacity>::List;
  View& operator[](int i) { return this->items[checked(i)]; }
  const View& operator[](int i) const { return this->items[checked(i)]; }

 private:
  int checked(int i) const {
    if (i < 0 || i >= this->count) refuse_view(given ? "operands" : "results", i, this->count);
    return i;
  }
};

namespace cpu {
struct PackedWeight;
}  // namespace cpu
struct Call;
/// Computes the results of one node on one rank from the rank's own parts, or has the device's stream compute them. Two
/// views never overlap unless the operation updates in place, or stands in a fusion: then a result may be the operand
/// that the node before it has made.
using Kernel = void (*)(const Call&);

/// One call of a kernel. Everything but the pointers and the loop indices is fixed before the first step.
struct Call {
  const Operation* operation = nullptr;
  Kernel kernel = nullptr;  ///< what computes it alone
  Views<max_node_operands, true> operands{};
  Views<max_results, false> results{};
  Ints ints{};
  double reals[2]{};
  std::int64_t layer = 0;        ///< index of the enclosing loop of layers, 0 outside
  std::int64_t micro_batch = 0;  ///< index of the enclosing loop of micro-batches, 0 outside
  /// of an update on an asynchronous device: where this is 0 it is to be skipped; nullptr: never
  const double* commit = nullptr;
  /// the device's own: of a GPU its stream and handles, of a CPU the rank's threads; a device around another one hands
  /// it on
  void* context = nullptr;
  cpu::PackedWeight* packed = nullptr;  ///< on a CPU: where operand 1 is kept as the kernel reads it

  /// On a CPU: number i, from 0 on, of those that an optimizer's `replace` or `apply` names for the operation. Throws
  /// Failure for one that it has not.
  double number(int i) const;
};

/// The run-time numbers that a call reads: its last operand, but for the one number that an update reads behind it.
inline const double* scalars_of(const Call& call) {
  const View& last = call.operands[call.operands.size() - 1];
  return (last.rank == 1 ? last : call.operands[call.operands.size() - 2]).as<const double>();
}

inline double Call::number(int i) const {
  const View& last = operands[operands.size() - 1];
  const View& numbers = last.rank == 1 ? last : operands[operands.size() - 2];
  const std::int64_t place = i >= 0 && i < ints.size() ? ints[i] : -1;
  if (numbers.rank != 1 || numbers.dtype != DType::f64 || place < 0 || place >= numbers.elements())
    throw Failure("a kernel asks for call.number(" + std::to_string(i) +
                      "), which is none of the numbers that its operation is given; name it where the operation is "
                      "applied, u.replace(..., {\"learning_rate\", \"momentum\"}), and count them from 0",
                  exit_code::internal);
  return numbers.as<const double>()[place];
}

/// What computes calls that follow each other at once: those of a fusion, or of one operation and the same element
/// types.
struct FusedKernel {
  void (*compute)(std::span<const Call>) = nullptr;  ///< nullptr: they are computed one by one
  /// of calls of one operation: one may read what those before it write; else none touches what another writes
  bool in_order = false;

  explicit operator bool() const { return compute != nullptr; }
};
/// Calls that a device computes at once, or one.
struct Launch {
  std::span<const Call> calls{};
  FusedKernel kernel{};  ///< none: it is one call

  void run() const { kernel ? kernel.compute(calls) : calls[0].kernel(calls[0]); }
};

}  // namespace parallel::internals

namespace parallel {
using internals::Call;
using internals::FusedKernel;
using internals::Kernel;
using internals::View;
}  // namespace parallel
