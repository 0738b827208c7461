// What one event of a plan takes on one rank of a machine, in seconds: the roofline for computation, rings for
// collectives.
#pragma once
#include <algorithm>

#include <parallel/cost/machine.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/plan/unrolled.hpp>

namespace parallel::internals {

namespace pricing {
/// Whether a node is a matmul with its attributes, so that its tiles can be counted: other products have others.
constexpr bool is_matmul(const Plan& plan, const Node& node) {
  if (node.operation->name != operation::matmul.name || node.operands.size() < 2 || node.ints.size() < 4) return false;
  const std::int64_t contracted = node.ints[0], batch = node.ints[3];
  const auto fits = [&](int o) { return batch + contracted <= plan.graph.value(node.operands[o]).type.layout.rank(); };
  return contracted >= 0 && contracted <= max_rank && batch >= 0 && batch <= max_rank && fits(0) && fits(1);
}
/// By how much a product takes longer than its operations because its tiles come in whole waves: a result of 128 x 256
/// to each processor at a time, or of 128 x 128, whichever fits better ("Matrix Multiplication Background User's
/// Guide", NVIDIA).
constexpr double quantization(const Plan& plan, const Node& node, const Machine& machine) {
  if (machine.processors == 0 || !is_matmul(plan, node)) return 1;
  const Layout &x = plan.graph.value(node.operands[0]).type.layout, &w = plan.graph.value(node.operands[1]).type.layout;
  const operation::Product p(node.ints);
  std::int64_t m = 1, n = 1, batch = 1;
  for (int d = 0; d < p.batch; ++d) batch *= local(x.dims[d], plan.mesh);
  for (int i = 0; i < x.rank() - p.batch - p.contracted; ++i) m *= local(x.dims[p.left_free(x.rank(), i)], plan.mesh);
  for (int i = 0; i < w.rank() - p.batch - p.contracted; ++i) n *= local(w.dims[p.right_free(w.rank(), i)], plan.mesh);
  const auto up = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const auto waves = [&](std::int64_t rows, std::int64_t columns) {
    const std::int64_t tiles = up(batch * up(m, rows) * up(n, columns), machine.processors) * machine.processors;
    return static_cast<double>(tiles * rows * columns) / static_cast<double>(batch * m * n);
  };
  const double high = waves(256, 128), wide = waves(128, 256), square = waves(128, 128);
  const double least = high < wide ? high : wide;
  return least < square ? least : square;
}
/// Whether a node of a fusion makes a value that is not written, as the next one's result lies there.
constexpr bool passes_on(const Plan& plan, const Event& e, int value) {
  const Node& maker = plan.graph.maker(value);
  if (e.nodes == 1 || maker.then < 0) return false;
  const Node& then = plan.graph.node(maker.then);
  const auto at = [&](int v) { return plan.storage[static_cast<std::size_t>(v)]; };
  return then.operands.contains(value) && at(value).block == at(then.result).block &&
         at(value).offset == at(then.result).offset;
}
/// Whether a node before n of a fusion makes or reads a value.
constexpr bool is_there(const Plan& plan, const Event& e, int n, int value) {
  for (int m = e.node; m != n; m = plan.graph.node(m).then)
    if (plan.graph.node(m).operands.contains(value) || plan.graph.value(value).node == m) return true;
  return false;
}
/// The operand of which a node reads no more than it writes, or -1.
constexpr int reads_part_of(const Node& node) {
  return node.transition.collective == Collective::slice ? 0 : node.operation->reads_part_of;
}
/// Whether a move that does nothing on this mesh has its operand where its result lies.
constexpr bool is_made_there(const Plan& plan, const Node& node) {
  const auto at = [&](int v) { return plan.storage[static_cast<std::size_t>(v)]; };
  return node.is(Structural::move) && looks_at(plan.graph, node, plan.mesh) && at(node.operands[0]) == at(node.result);
}
/// Bytes of a result that a node writes: all, but where it updates a part no more than its other operands have.
constexpr std::int64_t bytes_written(const Plan& plan, const Node& node, int value) {
  const auto bytes = [&](int v) { return local_bytes(plan.graph.value(v).type, plan.mesh); };
  if (!node.operation->updates || node.operation->reads_part_of != 0) return bytes(value);
  std::int64_t most = 0;
  for (int i = 1; i < node.operands.size(); ++i) most = bytes(node.operands[i]) > most ? bytes(node.operands[i]) : most;
  return most < bytes(value) ? most : bytes(value);
}
/// Bytes of an operand that a node reads which writes so many.
constexpr std::int64_t bytes_read(const Plan& plan, const Node& node, int operand, std::int64_t written) {
  const std::int64_t all = local_bytes(plan.graph.value(node.operands[operand]).type, plan.mesh);
  return operand == reads_part_of(node) && written < all ? written : all;
}
}  // namespace pricing

/// Bytes that one run of what is computed moves on one rank: reads, writes, and where caches allocate on a write reads
/// what it does not update in place. Of a fusion, what one node makes or reads the next ones need not read, and what
/// lies where the next node's result does is not written.
constexpr double bytes_moved(const Plan& plan, const Event& e, const Machine& machine) {
  const GraphView& g = plan.graph;
  std::int64_t bytes = 0;
  each_node(g, e, [&](int n) {
    const Node& node = g.node(n);
    if (pricing::is_made_there(plan, node)) return;
    std::int64_t written = 0;
    for (int r = 0; r < node.results; ++r)
      if (!pricing::passes_on(plan, e, node.result + r)) written += pricing::bytes_written(plan, node, node.result + r);
    for (int i = 0; i < node.operands.size(); ++i)
      if (!pricing::is_there(plan, e, n, node.operands[i])) bytes += pricing::bytes_read(plan, node, i, written);
    bytes += written + (machine.write_allocates && !node.operation->updates ? written : 0);
  });
  return static_cast<double>(bytes);
}

/// Seconds in which so many bytes are read and written.
constexpr double streaming_seconds(double bytes, const Rates& rates) {
  return bytes > 0 ? bytes / (bytes <= rates.cache_bytes ? rates.cache_bandwidth : rates.memory_bandwidth) : 0;
}

namespace pricing {
/// Whether a node has attention's operands, (batch, tokens, heads, ...), so that its scores can be counted.
constexpr bool is_attention(const Plan& plan, const Node& node) {
  const auto rank = [&](int o) { return plan.graph.value(node.operands[o]).type.layout.rank(); };
  return node.operation->rate == Rate::attention && node.operands.size() >= 2 && !node.ints.empty() && rank(0) >= 3 &&
         rank(1) >= 2;
}
/// Attention's products and, beside them, one exponential and its like per score.
constexpr double attention_seconds(const Plan& plan, const Node& node, const Machine& machine, const Rates& rates,
                                   int dtype) {
  const Layout &q = plan.graph.value(node.operands[0]).type.layout, &k = plan.graph.value(node.operands[1]).type.layout;
  const Dim &batch = q.dims[0], &queries = q.dims[1], &heads = q.dims[2], &keys = k.dims[1];
  double flops = plan.flops(node);
  double scores = static_cast<double>(local(batch, plan.mesh) * local(queries, plan.mesh) * local(heads, plan.mesh) *
                                      local(keys, plan.mesh));
  if (const int parts = static_cast<int>(degree(keys, plan.mesh)), i = rotations(plan.graph, node.operands[1]);
      node.ints[0] != 0 && i > 0) {
    // of a ring, where some ranks see all of these keys, the others none; in an order each sees half of them
    if (keys.ordered())
      scores /= 2;
    else
      flops *= static_cast<double>(parts) / (parts - i);
  } else if (node.ints[0] != 0) {
    // Half of the scores on average. Where n ranks share the queries and all have the keys, the last one sees (2n - 1)
    // / n of that average, but where they stand in an order; and a block of queries is computed up to the keys of its
    // last one.
    const double n = queries.ordered() ? 1
                                       : static_cast<double>(degree(queries, plan.mesh)) /
                                             static_cast<double>(degree(keys, plan.mesh));
    const auto own = static_cast<double>(local(queries, plan.mesh)), all = static_cast<double>(local(keys, plan.mesh));
    const double more = (2 * n - 1) / n + (machine.attention_block < own ? machine.attention_block : own) / all;
    flops *= more;
    scores *= more / 2;
  }
  const double rate = rates.attention[dtype] > 0 ? rates.attention[dtype] : rates.products[dtype];
  return flops / rate + (rates.scores[dtype] > 0 ? scores / rates.scores[dtype] : 0);
}
}  // namespace pricing

/// The arithmetic of one run of a node, on the slowest rank.
constexpr double arithmetic_seconds(const Plan& plan, const Node& node, const Machine& machine) {
  const Rates& rates = machine.with(plan.mesh.ranks());
  const auto dtype =
      static_cast<int>(plan.graph.value(node.operands.empty() ? int{node.result} : node.operands[0]).type.dtype);
  const Rate bound = node.operation->rate;
  if (rates.products[dtype] == 0 && (bound == Rate::products || bound == Rate::attention))
    throw std::invalid_argument(
        "parallel: " + std::string(machine.name.size() > 0 ? machine.name.view() : "the machine") +
        " has no rate for products of " + std::string(name_of(static_cast<DType>(dtype))) +
        "; give its rates `products` one, in FLOP/s, as tools/machine measures them");
  if (pricing::is_attention(plan, node)) return pricing::attention_seconds(plan, node, machine, rates, dtype);
  const double rate = bound == Rate::functions ? rates.functions[dtype] : rates.products[dtype];
  return rate > 0 ? plan.flops(node) * pricing::quantization(plan, node, machine) / rate : 0;
}
/// One run of what is computed, a node or a fusion: its arithmetic or its bytes, whichever takes longer, and the
/// launch. A GPU has kernels of fusions with products; of others it computes node by node.
constexpr double compute_seconds(const Plan& plan, const Event& e, const Machine& machine) {
  double arithmetic = 0;
  if (e.nodes > 1 && machine.processors > 0 && plan.graph.node(e.node).operation->rate != Rate::products) {
    each_node(plan.graph, e, [&](int n) { arithmetic += compute_seconds(plan, {EventKind::compute, n}, machine); });
    return arithmetic;
  }
  each_node(plan.graph, e, [&](int n) { arithmetic += arithmetic_seconds(plan, plan.graph.node(n), machine); });
  const double bytes = bytes_moved(plan, e, machine);
  if (const Node& node = plan.graph.node(e.node);
      machine.host_bandwidth > 0 && on_host(plan.graph.value(node.result).type.layout))
    return machine.launch + bytes / machine.host_bandwidth;
  const double streaming = streaming_seconds(bytes, machine.with(plan.mesh.ranks()));
  return machine.launch + (arithmetic > streaming ? arithmetic : streaming);
}

/// One call of a collective: a ring over all ranks of its axes (Thakur, Rabenseifner and Gropp 2005), the latency of
/// each step and the bytes that a rank sends over the bandwidth; before and behind it, slices of an inner dimension are
/// brought together. A message takes as long to receive as to send. What goes to the host or comes from it goes over
/// the link to it, or is read and written in the one memory.
constexpr double collective_seconds(const Plan& plan, const Node& node, const Machine& machine) {
  const int ranks = plan.mesh.ranks();
  if (copies(node.transition.collective)) {
    const Link* const host = machine.link_to_host();
    const double bytes = plan.all.sent(node);
    return host != nullptr ? host->latency + bytes / host->bandwidth
                           : streaming_seconds(2 * bytes, machine.with(ranks));
  }
  const Link link = machine.link(node.transition.axes, ranks);
  const auto packed = static_cast<double>(packing_bytes(plan.graph, node, plan.mesh));
  double seconds = known(node.transition.collective).steps(participants(node.transition, plan.mesh)) * link.latency;
  double bytes = node.transition.collective == Collective::receive ? static_cast<double>(plan.all.message(node))
                                                                   : plan.all.sent(node);
  const int n = participants(node.transition, plan.mesh);
  for (int k = 0; k < n && one_sided(node.transition); ++k) {  // the link of the one rank has all of it
    const Traffic t = traffic_of(node.transition, static_cast<double>(plan.all.message(node)), k, n);
    bytes = std::max({bytes, t.sent, t.received});
  }
  if (link.bandwidth > 0) seconds += bytes / link.bandwidth;
  return seconds + (packed > 0 ? streaming_seconds(2 * packed, machine.with(ranks)) : 0);
}

/// One event of a plan that takes time, whichever it is. The event says it, not its node: an edge between stages is a
/// message, but a copy in a chunk that keeps what it has.
constexpr double seconds(const Plan& plan, const Event& e, const Machine& machine) {
  return e.kind == EventKind::compute ? compute_seconds(plan, e, machine)
                                      : collective_seconds(plan, plan.graph.node(e.node), machine);
}

}  // namespace parallel::internals
