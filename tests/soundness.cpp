// Brute force over the definition: for every operation, every placement of every operand and of the result on one axis
// of 2, 3 and 4 ranks, the operation's own kernel runs on the ranks' parts. What turns out sound must be in the
// operation's table, what does not must not be. For every sound row the gradients, computed by each rank alone, must
// mean the gradient of the whole operation.
#include <random>

#include <doctest/doctest.h>

#include <parallel/parallel.hpp>

#include "operation_cases.hpp"

using namespace parallel;
using namespace parallel::internals;
using namespace cases;

namespace {

constexpr Axis ranks{"ranks"};

std::vector<Placement> placements(std::size_t rank, bool with_sums) {
  std::vector<Placement> all{Broadcast};
  if (with_sums) all.push_back(Partial);
  for (std::size_t d = 0; d < rank; ++d) all.push_back(split(static_cast<int>(d)));
  return all;
}

Type type_of(const Operand& o, Placement p) {
  Type type{o.dtype, {}};
  for (const auto s : o.size) type.layout.dims.push_back(Dim(s));
  type.layout = type.layout.with(&ranks, p);
  return type;
}

/// One operation in a graph of its own, with operands and results placed as said, whether that is sound or not.
struct Program {
  Trace trace{};
  std::vector<int> operands{};
  int result = 0, cotangent = 0;
  std::vector<int> gradients{};
};
Program program(const Case& c, const std::vector<Placement>& placed, const std::vector<Placement>& results,
                const List<Type, max_results>& shapes) {
  Program p;
  Lowering lowering{{p.trace}};
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    Member member;
    member.role = Role::input;
    member.type = type_of(c.operands[i], placed[i]);
    p.operands.push_back(
        p.trace.declare(operation::input, member, Kind::activation, c.operands[i].dtype != DType::i32));
    lowering.operands.push_back(p.operands.back());
  }
  lowering.operation = c.operation;
  lowering.ints = c.ints;
  lowering.reals[0] = c.first;
  lowering.reals[1] = c.second;
  for (int r = 0; r < shapes.size(); ++r) {
    Type type = shapes[r];
    type.layout = type.layout.with(&ranks, results[static_cast<std::size_t>(r)]);
    lowering.results.push_back(type);
  }
  if (c.operation->lower != nullptr)
    c.operation->lower(lowering);
  else
    lowering.result = p.trace.emit(*c.operation, nodes_operands(lowering.operands), lowering.results, Kind::activation,
                                   c.ints, c.first, c.second);
  p.result = lowering.result;
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

/// Whether the kernel's own shape rule accepts the parts and gives the part of the result: else it must not be called
/// on them.
bool shapes_fit(const Case& c, const std::vector<Placement>& placed, const Type& result, const Mesh& mesh) {
  Arguments a;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Type type = type_of(c.operands[i], placed[i]);
    Type part{type.dtype, {}};
    for (const Dim& d : type.layout.dims) {
      if (d.size % degree(d, mesh) != 0) return false;
      part.layout.dims.push_back(Dim(local(d, mesh)));
    }
    a.types.push_back(part);
    a.kinds.push_back(Kind::activation);
  }
  a.ints = c.ints;
  for (const Dim& d : result.layout.dims)
    if (d.size % degree(d, mesh) != 0) return false;
  if (c.operation == &operation::reshape) return a.types[0].layout.elements() == local_elements(result.layout, mesh);
  // fewer key heads than the rank's query heads are chosen by global coordinate
  if (c.operation == &operation::attention) {
    if (placed[0] == split(2) && placed[1] == Broadcast && placed[2] == Broadcast)
      return result.layout.on(&ranks) == split(2);
    if (placed[1] == split(2) && !(placed[0] == split(2) && placed[2] == split(2))) return false;
  }
  const Shaped shaped = c.operation->shape(a);
  if (shaped.refusal || shaped.results[0].layout.rank() != result.layout.rank()) return false;
  for (int d = 0; d < result.layout.rank(); ++d)
    if (shaped.results[0].layout.dims[d].size != local(result.layout.dims[d], mesh)) return false;
  return true;
}

void check_operation(const Case& c, int n) {
  const Mesh mesh{ranks = n};
  const Mesh one{ranks = 1};
  Random random;
  Arguments arguments;
  for (const Operand& o : c.operands) {
    arguments.types.push_back(type_of(o, Invariant));
    arguments.kinds.push_back(Kind::activation);
  }
  arguments.ints = c.ints;
  const Shaped shaped = c.operation->shape(arguments);
  REQUIRE(!shaped.refusal);
  const Signatures table = c.operation->signatures(arguments);
  const auto rank = static_cast<std::size_t>(shaped.results[0].layout.rank());
  std::vector<std::int64_t> result_size;
  for (const Dim& d : shaped.results[0].layout.dims) result_size.push_back(d.size);

  struct Truth {
    std::vector<Array> operands, gradients;
    Array result, cotangent;
  };
  std::vector<Truth> truths;  // the whole operation on one rank
  const std::vector<Placement> invariant(8, Invariant);
  for (int seed = 0; seed < 2; ++seed) {
    Truth t;
    const Program whole = program(c, invariant, invariant, shaped.results);
    lockstep::Machine machine(whole.trace.graph, one);
    for (std::size_t i = 0; i < c.operands.size(); ++i) {
      t.operands.push_back(random.array(c.operands[i], c.positive));
      machine.set(whole.operands[i], t.operands[i]);
    }
    t.cotangent = random.array({result_size}, false);
    machine.set(whole.cotangent, t.cotangent);
    machine.run();
    t.result = machine.whole(whole.result);
    for (const int g : whole.gradients) t.gradients.push_back(g >= 0 ? machine.whole(g) : Array{});
    truths.push_back(t);
  }

  std::vector<std::vector<Placement>> choices;
  for (const Operand& o : c.operands) choices.push_back(placements(o.size.size(), o.dtype != DType::i32));
  std::vector<std::size_t> at(choices.size());
  int sound_rows = 0;
  for (bool more = true; more;) {
    std::vector<Placement> placed;
    for (std::size_t i = 0; i < at.size(); ++i) placed.push_back(choices[i][at[i]]);
    for (const Placement q : placements(rank, true)) {
      const std::vector<Placement> results{q, q.split() && q.dim < 3 ? q : Broadcast};
      Type result = shaped.results[0];
      result.layout = result.layout.with(&ranks, q);
      bool divides = !q.split() || result.layout.dims[q.dim].size % n == 0;
      for (std::size_t i = 0; i < placed.size(); ++i)
        divides =
            divides && (!placed[i].split() || c.operands[i].size[static_cast<std::size_t>(placed[i].dim)] % n == 0);
      if (!divides) continue;
      bool sound = shapes_fit(c, placed, result, mesh), gradients_sound = sound;
      for (const Truth& t : truths) {
        if (!sound) break;
        const Program parts = program(c, placed, results, shaped.results);
        lockstep::Machine machine(parts.trace.graph, mesh);
        for (std::size_t i = 0; i < placed.size(); ++i)
          machine.set(parts.operands[i], t.operands[i], [&] { return random(); });
        machine.set(parts.cotangent, t.cotangent, [&] { return random(); });
        machine.run();
        sound = machine.consistent(parts.result) &&
                lockstep::difference(machine.whole(parts.result), t.result) < tolerance(c);
        for (std::size_t i = 0; sound && i < placed.size(); ++i)
          if (parts.gradients[i] >= 0)
            gradients_sound = gradients_sound &&
                              lockstep::difference(machine.whole(parts.gradients[i]), t.gradients[i]) < tolerance(c);
      }
      bool in_table = false, communicates = false;
      for (const Signature& row : table) {
        bool same = row.results[0] == q;
        for (std::size_t i = 0; i < placed.size(); ++i) same = same && row.operands[static_cast<int>(i)] == placed[i];
        in_table = in_table || (same && !row.communicates);
        communicates = communicates || (same && row.communicates);
      }
      std::string where = std::string(c.operation->name) + " n=" + std::to_string(n) + ":";
      for (std::size_t i = 0; i < placed.size(); ++i) where += " " + text(parallel::Placement(placed[i]));
      where += " -> " + text(q);
      INFO(where);
      CHECK(sound == in_table);
      if (sound && in_table) CHECK(gradients_sound);
      CHECK_FALSE((sound && communicates));
      sound_rows += sound ? 1 : 0;
    }
    more = false;
    for (std::size_t i = at.size(); i-- > 0 && !more;)
      if (++at[i] < choices[i].size())
        more = true;
      else
        at[i] = 0;
  }
  CHECK(sound_rows > 0);
}

}  // namespace

TEST_CASE("every operation's table holds exactly the sound rows") {
  for (const int n : {2, 3, 4})
    for (const Case& c : of_operations(n)) check_operation(c, n);
}

TEST_CASE("gradients are the derivatives") {
  for (const Case& c : of_operations(2)) {
    // rounded; checked above by its linearity
    if (c.operation == &operation::casting || c.operation == &operation::dropout) continue;
    Random random;
    Arguments arguments;
    for (const Operand& o : c.operands) {
      arguments.types.push_back(type_of(o, Invariant));
      arguments.kinds.push_back(Kind::activation);
    }
    arguments.ints = c.ints;
    const Shaped shaped = c.operation->shape(arguments);
    const std::vector<Placement> invariant(8, Invariant);
    const Program p = program(c, invariant, invariant, shaped.results);
    std::vector<Array> operands, directions;
    for (const Operand& o : c.operands) {
      operands.push_back(random.array(o, c.positive));
      directions.push_back(o.below > 0 ? lockstep::zeros(o.size) : random.array(o, false));
    }
    std::vector<std::int64_t> size;
    for (const Dim& d : shaped.results[0].layout.dims) size.push_back(d.size);
    const Array cotangent = random.array({size}, false);
    const auto value = [&](double step) {
      lockstep::Machine machine(p.trace.graph, Mesh{ranks = 1});
      for (std::size_t i = 0; i < operands.size(); ++i) {
        Array moved = operands[i];
        for (std::size_t e = 0; e < moved.data.size(); ++e) moved.data[e] += step * directions[i].data[e];
        machine.set(p.operands[i], moved);
      }
      machine.set(p.cotangent, cotangent);
      machine.run();
      double product = 0, slope = 0;
      const Array result = machine.whole(p.result);
      for (std::size_t e = 0; e < result.data.size(); ++e) product += result.data[e] * cotangent.data[e];
      for (std::size_t i = 0; i < operands.size(); ++i)
        if (p.gradients[i] >= 0) {
          const Array g = machine.whole(p.gradients[i]);
          for (std::size_t e = 0; e < g.data.size(); ++e) slope += g.data[e] * directions[i].data[e];
        }
      return std::pair{product, slope};
    };
    const double h = 1e-5;
    const double measured = (value(h).first - value(-h).first) / (2 * h);
    INFO(c.operation->name);
    CHECK(value(0).second == doctest::Approx(measured).epsilon(1e-5));
  }
}
