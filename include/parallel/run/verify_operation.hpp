// An operation, its table, its gradient, its kernels and its cost, tried against its definition by brute force.
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <parallel/algebra/notation.hpp>
#include <parallel/run/counted.hpp>
#include <parallel/run/trial.hpp>
#include <parallel/run/trial_on_axes.hpp>

namespace parallel::internals {

inline constexpr double unsaid = std::numeric_limits<double>::quiet_NaN();

/// How an operation is verified, and with which attributes and kernels.
struct VerifyOptions {
  Ints ints{};                            ///< the attributes, as the verb gives them
  double reals[2]{unsaid, unsaid};        ///< those that are no whole numbers; where kernels read one it is to be said
  std::span<const CpuKernels> kernels{};  ///< what is given to Cpu{...}, with kernels for double
  /// the same table with kernels for Counted in the column of double: what they count is at most what .flops says
  std::span<const CpuKernels> counting{};
  std::vector<int> ranks{2, 3, 4};  ///< how many an axis has; the first also where there are two axes
  double tolerance = 1e-9;          ///< between parts and whole, as a part of the largest element
  /// between the gradient and a central difference, as a part of the largest; the difference goes so far to each side
  double gradient_tolerance = 1e-5, step = 1e-5;
  bool smooth = true;              ///< no: the function is rounded, or a step, and no differences are taken
  bool find_missing = false;       ///< sound rows that the table has not are looked for, too: see `missing`
  std::size_t most_ways = 20'000;  ///< of ways to enter, and of layouts on two axes; of more, so many are drawn
};

/// What was tried of an operation that is right.
struct VerifiedOperation {
  int rows = 0;                        ///< of its table, each on some number of ranks
  int orders = 0;                      ///< ways in which operands entered that stood in an order
  int ways = 0;                        ///< in which operands lay and entered, on one axis and on two, beside the rows
  int derivatives = 0;                 ///< elements of operands whose gradient was compared with a difference
  std::vector<std::string> missing{};  ///< sound, and not in the table
};

namespace verifying {

inline constexpr Axis first{"first"}, second{"second"};

inline std::string text_of(const Signature& row) {
  std::string words;
  for (int i = 0; i < row.operands.size(); ++i) words += (i > 0 ? ", " : "") + text(Placement(row.operands[i]));
  words += " ->";
  for (int r = 0; r < row.results.size(); ++r) words += (r > 0 ? ", " : " ") + text(Placement(row.results[r]));
  return words;
}
inline std::string text_of(const List<Type, max_operands>& types) {
  std::string words;
  for (const Type& t : types) words += (words.empty() ? "" : ", ") + text(t);
  return words;
}

class Verification {
 public:
  Verification(const Operation& operation, const std::vector<TriedOperand>& operands, const VerifyOptions& options)
      : name_(checked(operation, operands, options)),
        options_(options),
        trial_(operation, operands, attributes(options), options.kernels) {
    for (const int n : options.ranks)
      if (n < 2)
        throw Misuse("verify_operation: an axis of " + std::to_string(n) +
                     " ranks shows nothing; give .ranks from 2 on");
    if (options.ranks.empty()) throw Misuse("verify_operation: .ranks is empty; give {2, 3, 4}");
    for (const TriedOperand& o : operands)
      if (o.dtype != DType::f64 && o.dtype != DType::i32)
        throw Misuse(
            "verify_operation computes in double; give operands of f64, and of i32 where they are whole numbers");
  }

  VerifiedOperation run() {
    check_rows();
    whole();
    float_kernels();
    if (options_.smooth) derivatives();
    cost();
    rows();
    entering(false);
    entering(true);
    on_two_axes();
    if (options_.find_missing) find_missing();
    return done_;
  }

 private:
  /// Its name. Throws Misuse for what nothing can be tried of.
  static std::string checked(const Operation& operation, const std::vector<TriedOperand>& operands,
                             const VerifyOptions& options) {
    const std::string name(operation.name);
    if (name.empty()) throw Misuse("verify_operation: the operation has no name; give it one, .name");
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const TriedOperand& o = operands[i];
      const std::string which = "verify_operation of " + name + ": operand " + std::to_string(i) + " ";
      for (const std::int64_t size : o.shape)
        if (size < 1) throw Misuse(which + "has a dimension of " + std::to_string(size) + "; give extents from 1 on");
      if (!(o.least <= o.most) || !std::isfinite(o.least) || !std::isfinite(o.most))
        throw Misuse(which + "is to be drawn from .least = " + shortest(o.least) + " to .most = " + shortest(o.most) +
                     "; give two numbers of which .least is not above");
      if (o.below < 0) throw Misuse(which + "is to be drawn .below = " + std::to_string(o.below) + "; give 1 or more");
    }
    if (!(options.step > 0) || !std::isfinite(options.step))
      throw Misuse("verify_operation of " + name + ": .step of the differences is " + shortest(options.step) +
                   "; give a small number above 0, as 1e-5");
    if (!(options.tolerance > 0) || !(options.gradient_tolerance > 0))
      throw Misuse("verify_operation of " + name + ": .tolerance is " + shortest(options.tolerance) +
                   " and .gradient_tolerance " + shortest(options.gradient_tolerance) + "; give numbers above 0");
    return name;
  }
  static bool says_reals(const VerifyOptions& o) { return !std::isnan(o.reals[0]) || !std::isnan(o.reals[1]); }
  static Trial::Attributes attributes(const VerifyOptions& o) {
    return {o.ints, {says_reals(o) ? o.reals[0] : 0, says_reals(o) ? o.reals[1] : 0}};
  }
  [[noreturn]] void wrong(const std::string& words) const { throw Failure(name_ + ": " + words); }
  std::string row_text(int row) const {
    return "row " + std::to_string(row) + " of its table, " + text_of(trial_.rows()[row]) + ",";
  }

  void check_rows() const {
    const Signatures& rows = trial_.rows();
    if (rows.empty()) wrong("its table has no row; begin with uniform_row(operands, results, Broadcast)");
    for (int i = 0; i < rows.size(); ++i) {
      const Signature& row = rows[i];
      if (row.operands.size() != trial_.plain().types.size() || row.results.size() < trial_.shapes().size())
        wrong(row_text(i) + " has placements for " + std::to_string(row.operands.size()) + " operands and " +
              std::to_string(row.results.size()) + " results, but there are " +
              std::to_string(trial_.plain().types.size()) + " and " + std::to_string(trial_.shapes().size()) +
              "; give one for each");
      if (row.communicates && trial_.operation().lower == nullptr)
        wrong(row_text(i) +
              " communicates, but the operation has no .lower that says what ranks exchange; write it, or "
              "leave row.communicates out and have the dimension whole");
      const auto check = [&](Placement p, const Type& type, const std::string& what) {
        if (p.split() && (p.dim < 0 || p.dim >= type.layout.rank()))
          wrong(row_text(i) + " splits dimension " + std::to_string(p.dim) + " of " + what + ", which is " +
                text(type) + "; dimensions count from 0");
      };
      for (int o = 0; o < row.operands.size(); ++o)
        check(row.operands[o], trial_.plain().types[o], "operand " + std::to_string(o));
      for (int r = 0; r < trial_.shapes().size(); ++r)
        check(row.results[r], trial_.shapes()[r], trial_.name_of_result(r));
    }
  }
  /// The operation on one rank, twice: kernels give numbers, and the same.
  void whole() {
    const Trial::Applied p = trial_.applied(trial_.plain(), trial_.whole());
    if (p.trace.graph.unfit == Reason::gradient_shape)
      wrong("its gradient gives an operand what has another shape; sum over what was repeated, by operation::sum_to");
    try {
      trial_.compute_truths();
    } catch (const CannotRun& none) {
      throw Misuse("verify_operation of " + name_ + ": " + none.what() + " (.kernels), for double");
    } catch (const Failure& kernel) {
      wrong("computed whole on one rank, " + std::string(kernel.what()));
    }
    for (const Trial::Given& g : trial_.given()) {
      const auto check = [&](const std::string& what, const lockstep::Array& a) {
        for (std::size_t e = 0; e < a.data.size(); ++e)
          if (!std::isfinite(a.data[e]))
            wrong(
                what + " is " + text_of_number(a.data[e]) + " at " +
                text_of_element(place_of(static_cast<std::int64_t>(e), a.size)) +
                ", computed whole on one rank; mend the kernel, which may read outside its operands, or draw operands "
                "where it is defined, .least and .most");
      };
      for (std::size_t r = 0; r < g.truth.results.size(); ++r)
        check(trial_.name_of_result(static_cast<int>(r)), g.truth.results[r]);
      for (std::size_t i = 0; i < g.truth.gradients.size(); ++i)
        check("the gradient of operand " + std::to_string(i), g.truth.gradients[i]);
      const Trial::Computed again = trial_.computed(trial_.plain(), trial_.whole(), Mesh{}, g);
      for (std::size_t r = 0; r < again.results.size(); ++r)
        if (again.results[r].data != g.truth.results[r].data)
          wrong("computed twice from the same numbers, " + trial_.name_of_result(static_cast<int>(r)) +
                " differs; compute it from operands and attributes alone, in one order");
    }
    if (!says_reals(options_)) reads_no_reals();
  }
  /// With other numbers, where none are given, it gives the same: else it would be tried as nobody applies it.
  void reads_no_reals() {
    Trial other(trial_.operation(), trial_.operands(), {options_.ints, {0.37, 0.73}}, options_.kernels);
    other.compute_truths();
    for (std::size_t d = 0; d < trial_.given().size(); ++d)
      if (trial_.fault(other.given()[d].truth, trial_.given()[d].truth, 1e-12))
        throw Misuse("verify_operation of " + name_ +
                     ": its kernels read a number, call.reals, and .reals gives none; give what the verb gives, .reals "
                     "= {0.7}, or {0} where that is meant");
  }
  /// Kernels for float compute what those for double do, where there is one for every node.
  void float_kernels() {
    if (std::none_of(options_.kernels.begin(), options_.kernels.end(),
                     [](const CpuKernels& k) { return k.f32 != nullptr; }))
      return;
    std::vector<TriedOperand> operands = trial_.operands();
    for (TriedOperand& o : operands)
      if (o.dtype == DType::f64) o.dtype = DType::f32;
    Trial in_float(trial_.operation(), operands, attributes(options_), options_.kernels);
    try {
      in_float.compute_truths();
    } catch (const CannotRun&) {
      return;
    } catch (const Failure& kernel) {
      wrong("computed in float, " + std::string(kernel.what()));
    }
    for (std::size_t d = 0; d < trial_.given().size(); ++d)
      if (const auto words = trial_.fault(in_float.given()[d].truth, trial_.given()[d].truth, 1e-4))
        wrong("its kernels for float and for double compute different things: in float " + *words + " in double");
  }

  /// The gradient against central differences of sum(result * cotangent), element by element.
  void derivatives() {
    const Trial::Applied p = trial_.applied(trial_.plain(), trial_.whole(), false);
    const Trial::Given& given = trial_.given()[0];
    const auto value = [&](const std::vector<lockstep::Array>& operands) {
      lockstep::AllRanks machine(p.trace.graph, Mesh{}, options_.kernels);
      for (std::size_t i = 0; i < operands.size(); ++i) machine.set(p.operands[i], operands[i]);
      machine.run();
      const lockstep::Array result = machine.whole(p.result);
      return std::inner_product(result.data.begin(), result.data.end(), given.cotangent.data.begin(), 0.0);
    };
    const bool any = std::any_of(given.truth.gradients.begin(), given.truth.gradients.end(),
                                 [](const lockstep::Array& g) { return !g.data.empty(); });
    if (trial_.operation().updates || trial_.shapes()[0].dtype == DType::i32) return;  // nothing goes back through it
    for (std::size_t i = 0; i < given.operands.size(); ++i) {
      if (trial_.operands()[i].dtype == DType::i32 || trial_.operands()[i].below > 0) continue;
      const lockstep::Array& gradient = given.truth.gradients[i];
      double largest = 1e-3;
      for (const double g : gradient.data) largest = std::max(largest, std::abs(g));
      std::vector<lockstep::Array> moved = given.operands;
      const std::size_t elements = moved[i].data.size(), apart = (elements + 63) / 64;
      for (std::size_t e = 0; e < elements; e += apart) {
        double& x = moved[i].data[e];
        const double here = x;
        x = here + options_.step;
        const double above = value(moved);
        x = here - options_.step;
        const double slope = (above - value(moved)) / (2 * options_.step);
        x = here;
        const double found = gradient.data.empty() ? 0 : gradient.data[e];
        ++done_.derivatives;
        if (std::abs(found - slope) <= options_.gradient_tolerance * std::max(largest, std::abs(slope))) continue;
        const std::string element = " at " + text_of_element(place_of(static_cast<std::int64_t>(e), moved[i].size));
        if (!any)
          wrong("it has no gradient, but a central difference of operand " + std::to_string(i) + element + " is " +
                text_of_number(slope) + "; give it one, .gradient, or say .smooth = false where none is meant");
        if (gradient.data.empty())
          wrong("its gradient gives operand " + std::to_string(i) + " nothing, but a central difference" + element +
                " is " + text_of_number(slope) + "; give it one by g.give(" + std::to_string(i) + ", ...)");
        wrong("the gradient of operand " + std::to_string(i) + " is " + text_of_number(found) + element +
              ", and a central difference " + text_of_number(slope) + " (step " + shortest(options_.step) +
              ", tolerance " + shortest(options_.gradient_tolerance) +
              " of the largest); mend .gradient or its kernel");
      }
    }
  }
  /// What kernels count of a node is at most what its operation says.
  void cost() const {
    if (options_.counting.empty()) return;
    std::vector<CpuKernels> kernels(options_.counting.begin(), options_.counting.end());
    kernels.insert(kernels.end(), options_.kernels.begin(), options_.kernels.end());
    const Trial::Applied p = trial_.applied(trial_.plain(), trial_.whole());
    lockstep::AllRanks machine(p.trace.graph, Mesh{}, kernels);
    trial_.set(machine, p, trial_.given()[0]);
    for (const int n : p.trace.graph.order) {
      const Node& node = p.trace.graph.nodes[n];
      const bool counts = std::any_of(options_.counting.begin(), options_.counting.end(),
                                      [&](const CpuKernels& k) { return k.operation == node.operation; });
      Counted::operations = 0;
      machine.node(node);
      const std::int64_t said = p.trace.graph.flops(node), counted = Counted::operations;
      if (counts && counted > said)
        wrong("on these operands " + std::string(node.operation->name) + " is said to be " + std::to_string(said) +
              " operations" + (node.operation->flops == nullptr ? ", one per element of its result," : "") +
              " but its kernel counts " + std::to_string(counted) +
              "; say so in .flops, so that plans are priced right");
    }
  }

  /// Each row of the table on an axis of each number of ranks; a row whose dimensions none of them divides on another.
  void rows() {
    bool any_splits = false, any_divided = false;  // by as many ranks as ways to enter are tried on
    for (int i = 0; i < trial_.rows().size(); ++i) {
      const Signature& row = trial_.rows()[i];
      if (sums_whole_numbers(row)) continue;
      bool tried = false;
      for (const int n : options_.ranks) tried = try_row(i, n) || tried;
      if (splits(row) && may_be_divided(row)) {
        any_splits = true;
        any_divided = any_divided || Trial::divided(trial_.lying(row, first), trial_.taken(row, first),
                                                    Mesh{first = options_.ranks[0]});
      }
      for (int n = 2; n <= 16 && !tried; ++n) tried = try_row(i, n);
      done_.rows += tried ? 1 : 0;
      if (!tried && may_be_divided(row))
        throw Misuse("verify_operation of " + name_ + ": no number of ranks divides all that " + row_text(i) +
                     " splits, so it cannot be tried; give operands whose extents have a common divisor, as 12");
    }
    if (any_splits && !any_divided)
      throw Misuse("verify_operation of " + name_ + ": " + std::to_string(options_.ranks[0]) +
                   " ranks divide no dimension that its table splits, so nothing split would be tried; give extents "
                   "that .ranks divide, as 12");
  }
  static bool splits(const Signature& row) {
    const auto any = [](const auto& placements) {
      return std::any_of(placements.begin(), placements.end(), [](const auto& p) { return Placement(p).split(); });
    };
    return any(row.operands) || any(row.results);
  }
  bool sums_whole_numbers(const Signature& row) const {
    for (int o = 0; o < row.operands.size(); ++o)
      if (row.operands[o].pending() && trial_.plain().types[o].dtype == DType::i32) return true;
    return false;
  }
  bool may_be_divided(const Signature& row) const {
    const Inference taken = trial_.taken(row, first);
    const auto one = [](const Layout& l) {
      return std::any_of(l.dims.begin(), l.dims.end(), [](const Dim& d) { return d.count > 0 && d.size == 1; });
    };
    return std::none_of(taken.to.begin(), taken.to.end(), one) &&
           std::none_of(taken.results.begin(), taken.results.end(), [&](const Type& t) { return one(t.layout); });
  }
  bool try_row(int i, int n) {
    const Signature& row = trial_.rows()[i];
    const Mesh mesh{first = n};
    const Arguments lying = trial_.lying(row, first);
    const Inference taken = trial_.taken(row, first);
    if (!Trial::divided(lying, taken, mesh)) return false;
    if (const auto words = guarded_fault(lying, taken, mesh))
      wrong(
          row_text(i) + " is wrong on an axis of " + std::to_string(n) + " ranks: " + *words +
          "; take the row out, or mend the kernel (View::at says which element of the full tensor stands at an index) or the gradient");
    return true;
  }
  std::optional<std::string> guarded_fault(const Arguments& lying, const Inference& inferred, const Mesh& mesh) const {
    try {
      return trial_.fault(lying, inferred, mesh, options_.tolerance);
    } catch (const Failure& kernel) {
      return std::string(kernel.what());
    }
  }

  /// Every way to enter: operands of every kind that lie in every way, and are moved as the rule says; or of these the
  /// ways in which some dimension stands in an order.
  void entering(bool ordered) {
    const int n = options_.ranks[0];
    const Mesh mesh{first = n};
    struct Way {
      Layout layout;
      Kind kind;
    };
    std::vector<std::vector<Way>> choices;
    std::size_t all = 1;
    for (const Type& t : trial_.plain().types) {
      std::vector<Placement> placements{Invariant, Broadcast};
      if (t.dtype != DType::i32) placements.push_back(Partial);
      for (int d = 0; d < t.layout.rank(); ++d) placements.push_back(split(d));
      std::vector<Layout> layouts;
      for (const Placement& p : placements) layouts.push_back(t.layout.with(&first, p));
      for (int d = 0; ordered && d < t.layout.rank(); ++d)
        for (const Ordered& by : {zigzag(first), cyclic(first)}) {
          layouts.push_back(t.layout);
          layouts.back().dims[d] = layouts.back().dims[d] / by;
        }
      std::vector<Way> ways;
      for (const Layout& l : layouts)
        for (const Kind kind : {Kind::activation, Kind::parameter, Kind::data}) ways.push_back({l, kind});
      all = all > 100'000'000 / ways.size() ? 100'000'000 : all * ways.size();
      choices.push_back(ways);
    }
    std::set<std::string> seen;
    const std::size_t times = std::min(all, options_.most_ways);
    for (std::size_t k = 0; k < times; ++k) {
      std::size_t which =
          times == all ? k : static_cast<std::size_t>(random_uniform(29, 0, k) * static_cast<double>(all));
      Arguments lying = trial_.plain();
      std::string operands;
      for (std::size_t i = choices.size(); i-- > 0; which /= choices[i].size()) {
        const Way& way = choices[i][which % choices[i].size()];
        lying.types[static_cast<int>(i)].layout = way.layout;
        lying.kinds[static_cast<int>(i)] = way.kind;
      }
      if (ordered && !any_ordered(lying)) continue;
      const Inference inferred = infer(trial_.operation(), lying);
      if (inferred.refusal || inferred.kind == Kind::refused || !Trial::divided(lying, inferred, mesh)) continue;
      List<Type, max_operands> enter;
      for (int i = 0; i < lying.types.size(); ++i) {
        enter.push_back({lying.types[i].dtype, inferred.to[i]});
        operands += (i > 0 ? ", " : "") + text(lying.types[i]) +
                    (lying.kinds[i] == Kind::parameter ? " (a parameter)"
                     : lying.kinds[i] == Kind::data    ? " (data)"
                                                       : "");
      }
      std::string same;
      for (int i = 0; i < lying.types.size(); ++i)
        same += text(lying.types[i]) + (lying.kinds[i] == Kind::data ? "d" : "") + ">" + text(enter[i]) + ";";
      if (!seen.insert(same).second) continue;
      ++(ordered ? done_.orders : done_.ways);
      if (const auto words = guarded_fault(lying, inferred, mesh))
        wrong(
            "operands that lie as " + operands + " on an axis of " + std::to_string(n) + " ranks enter as " +
            text_of(enter) + ", and " + *words +
            (ordered
                 ? "; mend the kernel (View::at says which element of the full tensor stands at an index), or "
                   "refuse it in .shape, operation::counted(a, operand, dimension)"
                 : "; have .gradient take how an operand lies from it, g.type(i): what is whole may lie in two ways"));
    }
  }

  static bool any_ordered(const Arguments& a) {
    for (const Type& t : a.types)
      for (const Dim& d : t.layout.dims)
        if (d.ordered()) return true;
    return false;
  }
  void on_two_axes() {
    const int n = options_.ranks[0];
    for (const int m : {n, options_.ranks.size() > 1 ? options_.ranks[1] : n}) {
      const Mesh mesh{first = n, second = m};
      const auto found = [&](const Arguments& lying, const std::string& words) {
        wrong("operands that lie as " + text_of(lying.types) + " on axes of " + std::to_string(n) + " and " +
              std::to_string(m) + " ranks: " + words + "; refuse it by .over_axes, or mend the kernel");
      };
      try {
        done_.ways += TrialOnAxes(trial_, mesh, options_.tolerance).run(options_.most_ways, found, nullptr).derived;
      } catch (const Failure& kernel) {
        if (std::string(kernel.what()).starts_with(name_ + ": ")) throw;
        wrong("on axes of " + std::to_string(n) + " and " + std::to_string(m) + " ranks " + kernel.what());
      }
      if (options_.ranks.size() < 2) break;
    }
  }

  /// Every placement on one axis that is sound although it is no row.
  void find_missing() {
    for (const int n : options_.ranks) {
      const Mesh mesh{first = n};
      std::vector<Signature> all{{}};
      const auto extend = [&](auto list, const Type& type) {
        std::vector<Placement> placements{Broadcast};
        if (type.dtype != DType::i32) placements.push_back(Partial);
        for (int d = 0; d < type.layout.rank(); ++d) placements.push_back(split(d));
        std::vector<Signature> more;
        for (const Signature& s : all)
          for (const Placement& p : placements) {
            more.push_back(s);
            (more.back().*list).push_back(p);
          }
        all = more;
      };
      for (const Type& t : trial_.plain().types) extend(&Signature::operands, t);
      for (const Type& t : trial_.shapes()) extend(&Signature::results, t);
      for (const Signature& row : all) {
        if (in_table(row)) continue;
        const Arguments lying = trial_.lying(row, first);
        Inference taken = trial_.taken(row, first);
        if (Trial::divided(lying, taken, mesh) && parts_fit(lying, taken, mesh) && !guarded_fault(lying, taken, mesh))
          done_.missing.push_back(text_of(row) + " on " + std::to_string(n) + " ranks");
      }
    }
  }
  bool in_table(const Signature& row) const {
    for (const Signature& known : trial_.rows()) {
      bool same = !known.communicates;
      for (int r = 0; r < row.results.size(); ++r) same = same && known.results[r] == row.results[r];
      for (int i = 0; i < row.operands.size(); ++i) same = same && known.operands[i] == row.operands[i];
      if (same) return true;
    }
    return false;
  }
  /// Whether the operation's own shape takes the parts and gives the part of the result: else no kernel must be called.
  bool parts_fit(const Arguments& lying, const Inference& taken, const Mesh& mesh) const {
    Arguments parts = trial_.plain();
    for (int i = 0; i < parts.types.size(); ++i)
      for (int d = 0; d < parts.rank(i); ++d)
        parts.types[i].layout.dims[d] = Dim(local(lying.types[i].layout.dims[d], mesh));
    const Layout& result = taken.results[0].layout;
    if (trial_.operation().aliases) return parts.types[0].layout.elements() == local_elements(result, mesh);
    const Shaped shaped = trial_.operation().shape(parts);
    if (shaped.refusal || shaped.results[0].layout.rank() != result.rank()) return false;
    for (int d = 0; d < result.rank(); ++d)
      if (shaped.results[0].layout.dims[d].size != local(result.dims[d], mesh)) return false;
    return true;
  }

  std::string name_;
  VerifyOptions options_;
  Trial trial_;
  VerifiedOperation done_{};
};
}  // namespace verifying

/// Tries an operation by its definition, on whole operands of these shapes: its kernels on the whole; its gradient
/// against central differences; each row of its table, by laying operands out, running the kernels on every rank's part
/// and comparing what the parts mean with the whole, gradients too; every way in which operands of every kind enter;
/// and every layout on two axes. Throws Failure, whose one sentence names the first that is wrong: the row, the
/// operand, the element, and both numbers. Throws Misuse where it cannot be tried.
///
///     verify_operation<own::operation::softcap>({{.shape = {8, 12}}}, {.reals = {0.7}, .kernels = own::kernels});
template <const Operation& operation>
VerifiedOperation verify_operation(const std::vector<TriedOperand>& operands, const VerifyOptions& options = {}) {
  return verifying::Verification(operation, operands, options).run();
}

}  // namespace parallel::internals

namespace parallel {
using internals::VerifiedOperation;
using internals::verify_operation;
using internals::VerifyOptions;
}  // namespace parallel
