// The constant description of an operation: what a verb applies, a node points to and a device finds its kernel by.
#pragma once
#include <cstdint>
#include <string_view>

#include <parallel/algebra/refusal.hpp>
#include <parallel/algebra/signature.hpp>
#include <parallel/algebra/type.hpp>

namespace parallel {
namespace internals {
/// The operations that passes know one by one: they say how a program is built and where values come from and go to.
/// Of all others passes ask what is said in `Operation`.
enum class Structural : std::uint8_t {
  none,
  move,
  parameter,
  input,
  scalars,
  carry,
  carried,
  layer,
  stacked,
  copy,
  returned,
  begin_region,
  end_region,
  bucket,
  in_bucket,
  stash,
  rounded,
};
constexpr Structural last_of(Structural) { return Structural::rounded; }
}  // namespace internals

struct Lowering;
struct Gradient;

/// An operation's whole-number attributes: dimensions, permutations, counts.
using Ints = internals::List<std::int64_t, 8>;

/// What an operation is applied to, before any placement: types, kinds and attributes.
struct Arguments {
  internals::List<Type, internals::max_operands> types{};
  internals::List<Kind, internals::max_operands> kinds{};
  Ints ints{};
  constexpr const internals::List<Dim, internals::max_rank>& dims(int operand) const {
    return types[operand].layout.dims;
  }
  constexpr int rank(int operand) const { return types[operand].layout.rank(); }
  constexpr std::int64_t size(int operand, int dim) const { return types[operand].layout.dims[dim].size; }
};

/// The types of the results without placements, or why there are none.
struct Shaped {
  internals::List<Type, internals::max_results> results{};
  Refusal refusal{};
};

/// Which of a machine's rates bounds an operation's arithmetic; of `memory` none does, unless it says that it does as
/// many operations as a product.
enum class Rate : std::uint8_t { memory, products, attention, functions };
constexpr Rate last_of(Rate) { return Rate::functions; }

/// The constant description of an operation. A node points to it, a device finds its kernel by its address.
struct Operation {
  std::string_view name;
  Shaped (*shape)(const Arguments&) = nullptr;
  Signatures (*signatures)(const Arguments&) = nullptr;
  /// What the table asks of all axes together, where it relates dimensions other than one to one: of the operands as
  /// they enter. None: nothing.
  Refusal (*over_axes)(const Arguments& entering) = nullptr;
  /// bit i: operand i is met element by element (rule 3 of the derivation)
  unsigned element_by_element = 0;
  void (*lower)(Lowering&) = nullptr;     ///< the nodes it becomes; none: one node
  void (*gradient)(Gradient&) = nullptr;  ///< none: a training through it is refused, but `operation::no_gradient`
  /// of the whole, unsplit operation; none: one per element of the result
  std::int64_t (*flops)(const Arguments&) = nullptr;
  bool updates = false;  ///< result r takes the storage of operand r
  /// another look at one value: a retype is made on what it views (rule 8)
  bool view = false;
  bool aliases = false;  ///< the result is the operand's storage
  bool source = false;   ///< every rank makes its own part from nothing
  bool computes = true;  ///< false: it only says where a value comes from
  /// from run to run: it is needed also where nothing reads its result
  bool remembers = false;
  internals::Structural structural = internals::Structural::none;
  Rate rate = Rate::memory;
  int reads_part_of = -1;  ///< an operand of which it reads, or in its place writes, no more than it has to; -1: none
  /// its kernels take a rank's share of a flat view, as `Stored` parameters lie in an optimizer: View has one dimension
  /// for it, with where it begins, and ends, in what the other axes leave of the tensor
  bool of_flat = false;
  /// on a mesh it becomes blocks, one for each rank of the axis that splits its keys, and rotations between them
  /// (plan/unrolled.hpp)
  bool ring = false;
  /// words of Recompute that name this operation mean it too
  const Operation* like = nullptr;
};

enum class Phase : std::uint8_t { forward, backward, optimizer };
constexpr Phase last_of(Phase) { return Phase::optimizer; }
constexpr std::string_view name_of(Phase p) {
  return p == Phase::forward ? "forward" : p == Phase::backward ? "backward" : "optimizer";
}

/// How a parameter begins: a distribution over global coordinates, the same for every mesh and placement.
struct Initializer {
  enum class Kind : std::uint8_t { constant, normal, xavier } kind = Kind::normal;
  friend constexpr Kind last_of(Kind) { return Kind::xavier; }
  double scale = 0.02;  ///< the constant; the standard deviation; the gain
  bool decays = true;   ///< the parameter's group: whether weight decay applies
  bool matrix = true;   ///< whether an optimizer of matrices may take it as one, if it is

  template <class... Given>
  constexpr Initializer operator()(const Given&...) const {
    static_assert(sizeof...(Given) > 99, "parallel: xavier, zeros and ones are no functions; write up{xavier}");
    return {};
  }
};

}  // namespace parallel
