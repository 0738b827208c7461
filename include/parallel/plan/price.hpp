// What one node of a plan takes on one rank of a machine, in seconds: the roofline for computation, rings for collectives.
#pragma once
#include <parallel/plan/machine.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel {

namespace pricing {
/// Which of a machine's rates bounds an operation's arithmetic. What is not named here is bound by memory, or by products where it says that it
/// does so many operations. By name, as a plan that was read from an object file has its operations' names only.
enum class Work : std::uint8_t { other, product, attention, function };
struct Named {
  std::string_view operation;
  Work work;
};
inline constexpr Named works[] = {
    {"matmul", Work::product},
    {"attention", Work::attention},
    {"attention_gradient", Work::attention},
    {"exp", Work::function},
    {"gelu", Work::function},
    {"gelu_gradient", Work::function},
    {"gelu_erf", Work::function},
    {"gelu_erf_gradient", Work::function},
    {"sum_of_exponentials", Work::function},
    {"normalized_exponential", Work::function},
    {"cross_entropy_gradient", Work::function},
    {"dropout", Work::function},
    {"random", Work::function},
};
constexpr Work work_of(const Operation& operation) {
  for (const Named& n : works)
    if (n.operation == operation.name) return n.work;
  return Work::other;
}
/// Reads no more of its first operand than it writes.
constexpr bool reads_a_part(const Node& node) {
  return node.operation->name == "embedding" || node.operation->name == "slice" || node.operation->name == "pick" ||
         node.transition.collective == Collective::slice;
}
}  // namespace pricing

/// Bytes that one run of a node reads and writes on one rank.
constexpr double bytes_moved(const Plan& plan, const Node& node) {
  std::int64_t read = 0, written = 0;
  for (int r = 0; r < node.results; ++r) written += local_bytes(plan.graph.value(node.result + r).type, plan.mesh);
  for (int i = 0; i < node.operands.size(); ++i)
    read += i == 0 && pricing::reads_a_part(node) ? written : local_bytes(plan.graph.value(node.operands[i]).type, plan.mesh);
  return static_cast<double>(read + written);
}

/// Seconds in which so many bytes are read and written.
constexpr double streaming_seconds(double bytes, const Rates& rates) {
  return bytes / (bytes <= rates.cache_bytes ? rates.cache_bandwidth : rates.memory_bandwidth);
}

/// How much more than the mean the last rank has to do: where the queries of causal attention are split on n ranks that have all keys, it sees
/// (2n - 1) / n times as many of them.
constexpr double imbalance(const Plan& plan, const Node& node) {
  if (pricing::work_of(*node.operation) != pricing::Work::attention || node.ints[0] == 0) return 1;
  const auto slices = [&](int operand) {
    const Layout& layout = plan.graph.value(node.operands[operand]).type.layout;
    return static_cast<double>(degree(layout.dims[1], plan.mesh));
  };
  const double n = slices(0) / slices(1);
  return (2 * n - 1) / n;
}

/// One run of a node that is computed, on the slowest rank: its arithmetic or its bytes, whichever takes longer, and the launch.
constexpr double compute_seconds(const Plan& plan, const Node& node, const Machine& machine) {
  const Rates& rates = machine.with(plan.mesh.ranks());
  const auto dtype = static_cast<int>(plan.graph.value(node.operands.empty() ? node.result : node.operands[0]).type.dtype);
  double rate = rates.products[dtype];
  switch (pricing::work_of(*node.operation)) {
    case pricing::Work::product:
      if (rate == 0) throw std::invalid_argument("parallel: the machine has no rate for products of this element type; give it one");
      break;
    case pricing::Work::attention:
      if (rates.attention[dtype] > 0) rate = rates.attention[dtype];
      break;
    case pricing::Work::function: rate = rates.functions[dtype]; break;
    case pricing::Work::other: break;
  }
  const double arithmetic = rate > 0 ? plan.flops(node) * imbalance(plan, node) / rate : 0;
  const double streaming = streaming_seconds(bytes_moved(plan, node), rates);
  return machine.launch + (arithmetic > streaming ? arithmetic : streaming);
}

/// Steps of a ring of n ranks, each of which costs its latency.
constexpr int ring_steps(Collective c, int n) {
  if (c == Collective::all_reduce) return 2 * (n - 1);
  return c == Collective::send ? 1 : n - 1;
}

/// One call of a collective: a ring over all ranks of its axes (Thakur, Rabenseifner and Gropp 2005), the latency of each step and the bytes
/// that a rank sends over the bandwidth; before and behind it, slices of an inner dimension are brought together.
constexpr double collective_seconds(const Plan& plan, const Node& node, const Machine& machine) {
  const int ranks = plan.mesh.ranks();
  const Link link = machine.link(node.transition.axes, ranks);
  const auto packed = static_cast<double>(packing_bytes(plan.graph, node, plan.mesh));
  double seconds = ring_steps(node.transition.collective, plan.mesh.extent(node.transition.axes)) * link.latency;
  if (link.bandwidth > 0) seconds += plan.all.sent(node) / link.bandwidth;
  return seconds + (packed > 0 ? streaming_seconds(2 * packed, machine.with(ranks)) : 0);
}

/// One run of a node in a plan, whichever it is.
constexpr double seconds(const Plan& plan, const Node& node, const Machine& machine) {
  return calls(node, plan.mesh) ? collective_seconds(plan, node, machine) : compute_seconds(plan, node, machine);
}

}  // namespace parallel
