// One operation, tried by its definition: its kernels on the ranks' parts, however operands lie, against its kernels on
// the whole.
#pragma once
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <parallel/device/random.hpp>
#include <parallel/program/differentiate.hpp>
#include <parallel/run/element.hpp>
#include <parallel/run/lockstep.hpp>

namespace parallel::internals {

/// An operand to try an operation with: its whole shape, and which numbers are drawn for it.
struct TriedOperand {
  std::vector<std::int64_t> shape{};
  DType dtype = DType::f64;  ///< f64, or i32 of an index, a target or a mask
  int below = 0;             ///< whole numbers from 0 to below - 1; 0: any numbers
  double least = -1, most = 1;
};

/// The most by which what was found is apart from what it should be.
struct Apart {
  std::vector<std::int64_t> at{};  ///< the element
  double found = 0, expected = 0;
  double part = 0;  ///< the difference as a part of the largest element
};
inline Apart apart(const lockstep::Array& found, const lockstep::Array& expected) {
  double largest = 1e-6, most = -1;  // what is zero in exact arithmetic is no number to take a part of
  for (const double x : expected.data) largest = std::max(largest, std::abs(x));
  Apart result;
  std::size_t place = 0;
  for (std::size_t i = 0; i < found.data.size() && i < expected.data.size(); ++i) {
    const double by = std::isfinite(found.data[i]) ? std::abs(found.data[i] - expected.data[i]) : 1e300;
    if (by <= most) continue;
    most = by;
    place = i;
  }
  if (most < 0) return result;
  result.found = found.data[place];
  result.expected = expected.data[place];
  result.part = most / largest;
  result.at = place_of(static_cast<std::int64_t>(place), found.size);
  return result;
}

/// Whether the ranks of a mesh have parts of it that are alike.
inline bool divides(const Layout& l, const Mesh& mesh) {
  for (const Dim& d : l.dims)
    if (d.size % slices(d, mesh) != 0) return false;
  return true;
}

/// An operation with its operands and attributes, and what one rank alone makes of several draws of numbers.
class Trial {
 public:
  struct Attributes {
    Ints ints{};
    double reals[2]{};
  };
  struct Computed {
    std::vector<lockstep::Array> results{}, gradients{};  ///< no elements where an operand has no gradient
    int unlike = -1;                                      ///< a result that is whole, but not alike on all ranks
  };
  /// Numbers, and what one rank makes of them.
  struct Given {
    std::vector<lockstep::Array> operands{};
    lockstep::Array cotangent{};
    Computed truth{};
  };
  /// The operation in a graph of its own.
  struct Applied {
    Trace trace{};
    std::vector<int> operands{}, gradients{};
    int result = 0, cotangent = -1;
  };

  /// Throws Misuse where there is no such operation, and what Machine throws of its kernels.
  Trial(const Operation& operation, std::vector<TriedOperand> operands, const Attributes& attributes,
        std::span<const CpuKernels> kernels = {}, int draws = 4)
      : operation_(operation), operands_(std::move(operands)), attributes_(attributes), kernels_(kernels) {
    const std::string name(operation.name);
    if (operation.shape == nullptr || operation.signatures == nullptr)
      throw Misuse(name + " has no " + (operation.shape == nullptr ? ".shape" : ".signatures") +
                   ", so no program can apply it; verify the operation that the verb applies");
    for (const TriedOperand& o : operands_) {
      Type type{o.dtype, {}};
      for (const std::int64_t size : o.shape) type.layout.dims.push_back(Dim(size));
      plain_.types.push_back(type);
      plain_.kinds.push_back(Kind::activation);
    }
    plain_.ints = attributes.ints;
    const Shaped shaped = operation.shape(plain_);
    if (shaped.refusal)
      throw Misuse(name + " refuses these operands: " + std::string(sentence_of(shaped.refusal.reason)));
    if (shaped.results.empty()) throw Misuse(name + " has a .shape without results; give the type of each");
    shapes_ = shaped.results;
    for (const Type& t : shapes_)
      for (const Dim& d : t.layout.dims)
        if (d.size < 1)
          throw Misuse(name + " has a .shape that gives a dimension of " + std::to_string(d.size) +
                       "; mend it, or give operands of which something is left");
    rows_ = operation.signatures(plain_);
    for (int draw = 0; draw < draws; ++draw) {
      Given given;
      for (const TriedOperand& o : operands_) given.operands.push_back(drawn(o));
      given.cotangent = drawn({.shape = sizes(shapes_[0].layout)});
      given_.push_back(given);
    }
  }
  /// Computes every draw on one rank; before anything is compared.
  void compute_truths() {
    for (Given& g : given_) g.truth = computed(plain_, whole(), Mesh{}, g);
  }

  const Operation& operation() const { return operation_; }
  const std::vector<TriedOperand>& operands() const { return operands_; }
  const Arguments& plain() const { return plain_; }
  const List<Type, max_results>& shapes() const { return shapes_; }
  const Signatures& rows() const { return rows_; }
  const std::vector<Given>& given() const { return given_; }

  /// Everything whole, on one rank.
  Inference whole() const {
    Inference w;
    for (const Type& t : plain_.types) w.to.push_back(t.layout);
    w.results = shapes_;
    w.kind = Kind::activation;
    return w;
  }
  /// Operands and results as a row says, on one axis; and whether a mesh divides them.
  Arguments lying(const Signature& row, const Axis& axis) const {
    Arguments a = plain_;
    for (int i = 0; i < a.types.size(); ++i) a.types[i].layout = a.types[i].layout.with(&axis, row.operands[i]);
    return a;
  }
  Inference taken(const Signature& row, const Axis& axis) const {
    Inference w = whole();
    const Arguments a = lying(row, axis);
    for (int i = 0; i < a.types.size(); ++i) w.to[i] = a.types[i].layout;
    for (int r = 0; r < shapes_.size(); ++r) w.results[r].layout = w.results[r].layout.with(&axis, row.results[r]);
    if (row.communicates) w.exchanging.push_back(&axis);
    return w;
  }
  static bool divided(const Arguments& lying, const Inference& inferred, const Mesh& mesh) {
    for (const Type& t : lying.types)
      if (!divides(t.layout, mesh)) return false;
    for (const Layout& l : inferred.to)
      if (!divides(l, mesh)) return false;
    for (const Type& t : inferred.results)
      if (!divides(t.layout, mesh)) return false;
    return true;
  }

  /// The operation in a graph: operands that lie so enter as `inferred` says. `back`: with its gradient.
  Applied applied(const Arguments& lying, const Inference& inferred, bool back = true) const {
    Applied p;
    List<int, max_operands> operands;
    for (int i = 0; i < lying.types.size(); ++i) {
      Member member;
      member.role = Role::input;
      member.type = lying.types[i];
      const bool differentiable = member.type.dtype != DType::i32 && lying.kinds[i] != Kind::data;
      operands.push_back(p.trace.declare(operation::input, member, lying.kinds[i], differentiable));
      p.operands.push_back(operands[i]);
    }
    p.result = apply(p.trace, operation_, operands, inferred, attributes_.ints, {}, attributes_.reals[0],
                     attributes_.reals[1]);
    if (!back) return p;
    const auto forward = p.trace.graph.order;
    Member member;
    member.role = Role::input;
    member.type = conjugate(p.trace.graph.values[p.result].type);
    p.cotangent = p.trace.declare(operation::input, member, Kind::activation, false);
    Differentiation differentiation(p.trace);
    differentiation.run(forward, p.result, p.cotangent);
    for (const int o : p.operands) p.gradients.push_back(differentiation.of(o));
    return p;
  }
  /// What the ranks of a mesh make of these numbers, each node by its definition.
  Computed computed(const Arguments& lying, const Inference& inferred, const Mesh& mesh, const Given& given) const {
    const Applied p = applied(lying, inferred);
    lockstep::AllRanks machine(p.trace.graph, mesh, kernels_);
    if (mesh.ranks() == 1) machine.margin = whole_margin;
    set(machine, p, given);
    machine.run();
    Computed done;
    for (int r = 0; r < inferred.results.size(); ++r) {
      if (!machine.consistent(p.result + r) && done.unlike < 0) done.unlike = r;
      done.results.push_back(machine.whole(p.result + r));
    }
    for (const int g : p.gradients) done.gradients.push_back(g >= 0 ? machine.whole(g) : lockstep::Array{});
    return done;
  }
  /// Gives a machine the operands and the cotangent; the terms of pending sums are drawn.
  void set(lockstep::AllRanks& machine, const Applied& p, const Given& given) const {
    for (std::size_t i = 0; i < p.operands.size(); ++i)
      machine.set(p.operands[i], given.operands[i], [&] {
        const double x = 2 * uniform() - 1;
        return operands_[i].below > 0 ? std::floor(4 * x) : x;  // so that equal sums are equal
      });
    if (p.cotangent >= 0) machine.set(p.cotangent, given.cotangent, [&] { return 2 * uniform() - 1; });
  }

  /// In what the ranks' results and gradients differ from those of one rank, in words; nothing where they do not.
  std::optional<std::string> fault(const Arguments& lying, const Inference& inferred, const Mesh& mesh,
                                   double tolerance) const {
    for (const Given& g : given_) {
      const Computed parts = computed(lying, inferred, mesh, g);
      if (parts.unlike >= 0) return name_of_result(parts.unlike) + " is whole, but not alike on all ranks";
      for (std::size_t i = 0; i < parts.gradients.size(); ++i)
        if (lying.kinds[static_cast<int>(i)] != Kind::data && parts.gradients[i].data.empty() &&
            !g.truth.gradients[i].data.empty())
          return "operand " + std::to_string(i) + " is given no gradient, which it is where nothing is split";
      if (auto words = fault(parts, g.truth, tolerance)) return words;
    }
    return {};
  }
  std::optional<std::string> fault(const Computed& found, const Computed& truth, double tolerance) const {
    for (std::size_t r = 0; r < found.results.size(); ++r)
      if (auto words = fault(name_of_result(static_cast<int>(r)), found.results[r], truth.results[r], tolerance))
        return words;
    for (std::size_t i = 0; i < found.gradients.size(); ++i)
      if (!found.gradients[i].data.empty())
        if (auto words = fault("the gradient of operand " + std::to_string(i), found.gradients[i], truth.gradients[i],
                               tolerance))
          return words;
    return {};
  }
  std::string name_of_result(int r) const { return shapes_.size() > 1 ? "result " + std::to_string(r) : "the result"; }

  static std::vector<std::int64_t> sizes(const Layout& l) {
    std::vector<std::int64_t> all;
    for (const Dim& d : l.dims) all.push_back(d.size);
    return all;
  }

 private:
  static std::optional<std::string> fault(const std::string& what, const lockstep::Array& found,
                                          const lockstep::Array& expected, double tolerance) {
    const Apart a = apart(found, expected);
    if (a.part < tolerance) return {};
    std::string words = what + " is " + text_of_number(a.found) + " at " + text_of_element(a.at) + ", and " +
                        text_of_number(a.expected) + " computed whole";
    if (std::isnan(a.found)) words += " (a kernel that reads outside its part reads what is no number)";
    return words;
  }
  /// Around results that one rank computes whole, which it does first: a kernel that writes far outside is named there,
  /// before it reaches other memory.
  static constexpr std::size_t whole_margin = std::size_t{1} << 20;

  double uniform() const { return random_uniform(17, 0, drawn_++); }
  lockstep::Array drawn(const TriedOperand& o) const {
    lockstep::Array a = lockstep::zeros(o.shape);
    for (double& x : a.data)
      x = o.below > 0 ? std::floor(o.below * uniform()) : o.least + (o.most - o.least) * uniform();
    return a;
  }

  const Operation& operation_;
  std::vector<TriedOperand> operands_;
  Attributes attributes_;
  std::span<const CpuKernels> kernels_;
  Arguments plain_{};
  List<Type, max_results> shapes_{};
  Signatures rows_{};
  std::vector<Given> given_{};
  mutable std::uint64_t drawn_ = 0;
};

}  // namespace parallel::internals

namespace parallel {
using internals::TriedOperand;
}  // namespace parallel
