// Scaled dot-product attention over heads: causal or not, over keys that a mask leaves out, among packed documents, over
// keys of a cache, with dropped probabilities. Queries may have more heads than keys and values (grouped queries), and may be another
// sequence than they (cross-attention). Where an axis splits the sequence of all three, `Context` says how.
#pragma once
#include <parallel/meta/tried_words.hpp>
#include <parallel/operation/elementwise.hpp>
#include <parallel/operation/to.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
// clang-format off
// q[b, s, h, d]   k, v[b, t, g, d]   seen[b, t]   position   result
// S(batch)        S                  S            B          S            documents of queries [b, s] lie as q does
// S(heads)        S                  B            B          S            each rank has the keys of its heads
// S(heads)        B                  B            B          S            fewer key heads than ranks: chosen by global
//                                                                         coordinate; their gradients are Partial
// S(sequence)     B                  B            B          S            the gradients of k and v are Partial
// B               B, v S(size)       B            B          S
// B               B, v P             B            B          P
// S(sequence)     S                  S            B          S            ring_attention alone: communicates
//
// Over several axes: those that split key heads are the first of those that split query heads, [8/a/b] with [4/a], not
// with [4/b].
// clang-format on

/// The attributes: whether queries see only keys up to their own position, whether there is a mask of keys, or a number
/// of each key's document and of each query's, whether there is a position.
struct Attending {
  bool causal, masked, packed, positioned;
  constexpr Attending(const Ints& i) : causal(i[0] != 0), masked(i[1] == 1), packed(i[1] == 2), positioned(i[2] != 0) {}
  /// queries, keys and values, and what says of keys which are seen
  constexpr int of_keys() const { return masked || packed ? 4 : 3; }
  /// where the operand of a dropping attention stands that holds seed and step
  constexpr int scalars() const { return of_keys() + packed + positioned; }
};

constexpr Refusal refused_attention(const Arguments& a) {
  for (int i = 0; i < 3; ++i)
    if (a.rank(i) != 4) return {Reason::wrong_rank, {a.rank(i), 4}};
  for (int d = 0; d < 4; ++d) {
    if (a.size(1, d) != a.size(2, d) && d != 3) return {Reason::shapes_differ, {a.size(1, d), a.size(2, d)}};
    if (d != 1 && d != 2 && a.size(0, d) != a.size(1, d)) return {Reason::shapes_differ, {a.size(0, d), a.size(1, d)}};
  }
  if (a.size(0, 2) % a.size(1, 2) != 0) return {Reason::heads_differ, {a.size(0, 2), a.size(1, 2)}};
  const Attending attending(a.ints);
  for (int i = 3; i < attending.of_keys() + attending.packed; ++i) {
    const int of = i == 3 ? 1 : 0;
    if (a.rank(i) != 2) return {Reason::wrong_rank, {a.rank(i), 2}};
    for (int d = 0; d < 2; ++d)
      if (a.size(i, d) != a.size(of, d)) return {Reason::shapes_differ, {a.size(of, d), a.size(i, d)}};
  }
  if (attending.positioned && a.rank(attending.scalars() - 1) != 0)
    return {Reason::wrong_rank, {a.rank(attending.scalars() - 1), 0}};
  for (int i = 0; i < 3; ++i)
    if (const Refusal refusal = counted(a, i, 2)) return refusal;
  for (int i = 3; i < a.types.size(); ++i)
    if (whole_numbers(a, i)) return whole_numbers(a, i);
  for (int i = 1; i < 3; ++i)
    if (a.types[i].dtype != a.types[0].dtype)
      return {Reason::element_types, {bytes_of(a.types[0].dtype), bytes_of(a.types[i].dtype)}};
  return {};
}
/// The axes that split the sequence of queries, keys and values.
constexpr AxisList axes_of_sequence(const Arguments& a) {
  AxisList axes;
  for (const Axis* axis : a.dims(0)[1])
    if (a.dims(1)[1].split_by(axis) && a.dims(2)[1].split_by(axis)) axes.push_back(axis);
  return axes;
}
constexpr Refusal no_context(const Arguments& a) {
  const AxisList axes = axes_of_sequence(a);
  return axes.empty() ? Refusal{} : Refusal{Reason::attention_sequence, {a.size(0, 1)}, axes[0]};
}
constexpr Shaped shape_of_attention(const Arguments& a, const Refusal& beside = {}) {
  const Type type{a.types[0].dtype, a.types[0].layout.unplaced()};
  const Refusal ill = refused_attention(a), refusal = ill ? ill : beside;
  if (a.rank(0) != 4 || a.rank(2) != 4) return {{type}, refusal};
  // log of the sum of exponentials of a row of scores: [b, s, h]
  Type result = type, statistic{precise(type.dtype), type.layout};
  result.layout.dims[3] = Dim(a.size(2, 3));
  statistic.layout.dims.count = 3;
  return {{result, statistic}, refusal};
}
PARALLEL_AHEAD constexpr Shaped attention_shape(const Arguments& a) { return shape_of_attention(a, no_context(a)); }
PARALLEL_AHEAD constexpr Shaped ring_attention_shape(const Arguments& a) { return shape_of_attention(a); }
PARALLEL_AHEAD constexpr Signatures attention_table(const Arguments& a) {
  Signatures rows{uniform_row(3, 2, Broadcast)};
  if (a.size(0, 0) > 1) rows.push_back(uniform_row(3, 2, split(0)));
  if (a.size(1, 2) > 1) rows.push_back(uniform_row(3, 2, split(2)));
  if (a.size(0, 2) > 1) rows.push_back({{split(2), Broadcast, Broadcast}, {split(2), split(2)}});
  if (a.size(0, 1) > 1) rows.push_back({{split(1), Broadcast, Broadcast}, {split(1), split(1)}});
  if (a.size(2, 3) > 1) rows.push_back({{Broadcast, Broadcast, split(3)}, {split(3), Broadcast}});
  rows.push_back({{Broadcast, Broadcast, Partial}, {Partial, Broadcast}});
  const Attending attending(a.ints);
  for (Signature& row : rows) {
    const Placement queries = row.operands[0], batch = queries == split(0) ? queries : Broadcast;
    if (attending.of_keys() > 3) row.operands.push_back(batch);
    if (attending.packed) row.operands.push_back(queries == split(1) ? queries : batch);
    if (attending.positioned) row.operands.push_back(Broadcast);
  }
  return rows;
}
PARALLEL_AHEAD constexpr Signatures ring_attention_table(const Arguments& a) {
  Signatures rows = attention_table(a);
  const Attending attending(a.ints);
  Signature around = uniform_row(attending.of_keys() + attending.packed, 2, split(1));
  around.communicates = true;
  if (a.size(0, 1) > 1 && a.size(1, 1) > 1) rows.push_back(around);
  return rows;
}
/// Over all axes: those that split the heads of keys and of values are the first of those that split the query heads,
/// in their order. Then the key heads that a rank has are those which its query heads ask for, and each further axis
/// finds all of them.
PARALLEL_AHEAD constexpr Refusal keys_of_queries(const Arguments& entering) {
  for (int i = 0; i < 3; ++i)  // which keys a query sees is where those of a rank end: they ascend within its slice
    if (const Dim& dim = entering.dims(i)[1]; dim.ordered() && !(dim.count > 0 && dim.axes[0] == dim.ordered_for))
      return counted(entering, i, 1);
  const Dim& queries = entering.dims(0)[2];
  for (int i = 1; i < 3; ++i) {
    const Dim& keys = entering.dims(i)[2];
    for (int a = 0; a < keys.count; ++a)
      if (a >= queries.count || keys.axes[a] != queries.axes[a])
        return {Reason::keys_elsewhere, {queries.count, keys.count}, keys.axes[a]};
  }
  return {};
}
/// And a ring leads over one axis: asked of what enters, as also what was whole may be sliced.
PARALLEL_AHEAD constexpr Refusal one_ring(const Arguments& entering) {
  const AxisList axes = axes_of_sequence(entering);
  return axes.size() < 2 ? keys_of_queries(entering)
                         : Refusal{Reason::two_rings, {entering.size(0, 1), axes.size()}, axes[axes.size() - 1]};
}
PARALLEL_AHEAD constexpr std::int64_t attention_flops(
    const Arguments& a) {  // two products of s x t scores, half of them where causal
  return (a.ints[0] != 0 ? 2 : 4) * a.types[0].layout.elements() * a.size(1, 1);
}
// scores again, and four products
PARALLEL_AHEAD constexpr std::int64_t attention_gradient_flops(const Arguments& a) {
  return attention_flops(a) / 2 * 5;
}
/// (q, k, v, the other operands, result, statistic, g): the gradients of q, k and v.
inline constexpr Operation attention_derivative{
    .name = "attention_gradient", .flops = attention_gradient_flops, .rate = Rate::attention};
/// The same around a ring: of k and v each rank has the part that it began with.
inline constexpr Operation ring_attention_derivative{
    .name = "ring_attention_gradient", .flops = attention_gradient_flops, .rate = Rate::attention, .ring = true};
constexpr void gradient_of_attention(Gradient& g, const Operation& derivative) {
  List<int, max_node_operands> operands = g.node.operands;
  for (const int o : {g.result(), g.result(1), g.cotangent()}) operands.push_back(o);
  const int dq = g.emit(derivative, operands, {conjugate(g.type(0)), conjugate(g.type(1)), conjugate(g.type(2))},
                        g.node.ints, g.node.reals[0], g.node.reals[1]);
  for (int i = 0; i < 3; ++i)
    if (g.wants(i)) g.give(i, dq + i);
}
PARALLEL_AHEAD constexpr void attention_gradient(Gradient& g) { gradient_of_attention(g, attention_derivative); }
PARALLEL_AHEAD constexpr void ring_attention_gradient(Gradient& g) {
  gradient_of_attention(g, ring_attention_derivative);
}
PARALLEL_AHEAD constexpr void attention_lower(Lowering&);
/// Operands (q, k, v[, seen | documents of keys, of queries][, position][, scalars]); ints: Attending, and where
/// probabilities are dropped the positions of seed and step among the scalars and the number of the call. The numbers are the scale of the scores and
/// the probability of a probability to be dropped.
inline constexpr Operation attention{.name = "attention",
                                     .shape = attention_shape,
                                     .signatures = attention_table,
                                     .over_axes = keys_of_queries,
                                     .lower = attention_lower,
                                     .gradient = attention_gradient,
                                     .flops = attention_flops,
                                     .rate = Rate::attention};
/// The same where no axis splits the sequence of all three; else, with Q, K and V split, attention of a rank's queries
/// to its own keys, then to those of the rank before it, and so on, which come around a ring by n - 1 rotations (Li et
/// al., 2021; Liu et al., 2023). What has been attended is joined by `join_attention`. Backward keys and values go
/// around again, and their gradients behind them.
inline constexpr Operation ring_attention{.name = "ring_attention",
                                          .shape = ring_attention_shape,
                                          .signatures = ring_attention_table,
                                          .over_axes = one_ring,
                                          .lower = attention_lower,
                                          .gradient = ring_attention_gradient,
                                          .flops = attention_flops,
                                          .rate = Rate::attention,
                                          .ring = true,
                                          .like = &attention};
/// (result, statistic, result, statistic): attention to two sets of keys, from that to each.
inline constexpr Operation join_attention{.name = "join_attention"};
PARALLEL_AHEAD constexpr void attention_lower(Lowering& l) {
  List<int, max_node_operands> operands = nodes_operands(l.operands);
  Ints ints = l.ints;
  const bool probable = l.reals[1] >= 0 && l.reals[1] < 1;
  if (!probable) l.trace.refuse(Reason::probability);
  const double dropped = l.trace.training || !probable ? l.reals[1] : 0;
  if (dropped > 0) {
    for (const std::int64_t i :
         {std::int64_t{l.trace.scalar("seed")}, std::int64_t{l.trace.scalar("step")}, l.trace.draw()})
      ints.push_back(i);
    operands.push_back(l.trace.graph.scalar_value);
  }
  l.result = l.emit(l.exchanging.empty() ? attention : ring_attention, operands, l.results, ints, l.reals[0], dropped);
}
/// One over the root of the size of a head.
constexpr double scale_of_scores(const Type& q) {
  double size = 1, root = 1;
  if (q.layout.rank() == 4) size = static_cast<double>(q.layout.dims[3].size);
  for (int i = 0; i < 60; ++i) root = (root + size / root) / 2;
  return 1 / root;
}
}  // namespace operation

/// How attention finds keys and values of other ranks, where an axis splits the sequence of queries, keys and values
/// (context parallelism). N: elements of the keys and values of the whole sequence, n: ranks of the axis. What is sent
/// forward is sent backward again, but for a ring's, which sends twice that.
enum class Context : std::uint8_t {
  none,      ///< not at all: refused
  gathered,  ///< keys and values are gathered, (n-1)/n N are sent; each rank has all of them
  /// they come around in n - 1 rotations, (n-1)/n N are sent, the next under the current product; a rank has no more
  /// than two parts of them beside its own (ring attention)
  ring,
  /// queries, keys and values are brought to the heads by all-to-all, and the result back: (n-1)/n^2 of all four are
  /// sent; n divides the heads, of queries and of keys (Ulysses: Jacobs et al., 2023)
  ulysses,
};
namespace internals {
/// The one that a program names, or that tools/plan tries in its place.
constexpr Context or_tried(Context named) {
  if (named == Context::none) return named;
  return trying::has("context gathered")  ? Context::gathered
         : trying::has("context ring")    ? Context::ring
         : trying::has("context ulysses") ? Context::ulysses
                                          : named;
}
/// Moved on every axis that splits dimension 1, the innermost first, and brought to order.
template <Placement where, Distributed X>
constexpr auto off_sequence(const X& x, Here here) {
  if constexpr (X::kind == Kind::refused || X::type.layout.rank() < 2)
    return x;
  else if constexpr (X::type.layout.dims[1].count == 0 && X::type.layout.dims[1].ordered())
    return to<spelling::StandingAs<1, Dim{}>>(x, here);
  else if constexpr (X::type.layout.dims[1].count == 0)
    return x;
  else
    return off_sequence<where>(
        to<OnAxis<X::type.layout.dims[1].axes[X::type.layout.dims[1].count - 1], where>>(x, here), here);
}
/// Back in the order and on the axes of dimension 1 of Like, the outermost first.
template <class Like, int done = 0, Distributed X>
constexpr auto on_sequence(const X& x, Here here) {
  if constexpr (X::kind == Kind::refused || Like::type.layout.rank() < 2 || done == Like::type.layout.dims[1].count)
    return x;
  else if constexpr (!X::type.layout.dims[1].ordered_as(Like::type.layout.dims[1]))
    return on_sequence<Like>(to<spelling::StandingAs<1, Like::type.layout.dims[1].whole()>>(x, here), here);
  else
    return on_sequence<Like, done + 1>(to<OnAxis<Like::type.layout.dims[1].axes[done], split(1)>>(x, here), here);
}
/// Attention by a context; `seen`, if that is given, is the mask, or the documents of keys and then of queries.
template <Context context, bool causal, class Q, class K, class V, class... Seen>
constexpr auto attend(double dropped, Here here, const Q& q, const K& k, const V& v, const Seen&... seen) {
  constexpr auto none = Context::none;
  if constexpr (context == Context::gathered) {
    const auto whole_keys = [&](const auto&... of_keys) {
      return attend<none, causal>(dropped, here, q, off_sequence<Broadcast>(k, here), off_sequence<Broadcast>(v, here),
                                  of_keys...);
    };
    const auto whole_mask = [&](const auto& of_keys, const auto&... of_queries) {
      return whole_keys(off_sequence<Broadcast>(of_keys, here), of_queries...);
    };
    if constexpr (sizeof...(Seen) == 0)
      return whole_keys();
    else
      return whole_mask(seen...);
  } else if constexpr (context == Context::ulysses) {
    return on_sequence<Q>(
        attend<none, causal>(dropped, here, off_sequence<split(2)>(q, here), off_sequence<split(2)>(k, here),
                             off_sequence<split(2)>(v, here), off_sequence<Broadcast>(seen, here)...),
        here);
  } else {
    constexpr int masked = sizeof...(Seen);
    using Attend = std::conditional_t<context == Context::ring, Apply<operation::ring_attention, causal, masked, false>,
                                      Apply<operation::attention, causal, masked, false>>;
    return Attend{operation::scale_of_scores(Q::type), dropped}(here, q, k, v, seen...);
  }
}
}  // namespace internals

/// softmax(q k^T / sqrt(size)) v for every head: q[batch, sequence, heads, size], k and v[batch, keys, groups, size]
/// (Vaswani et al., 2017; grouped queries: Ainslie et al., 2023). `causal`: position i sees positions up to i. In
/// training a probability is zero with the probability `dropped`, the others grow by 1 / (1 - dropped). `context`: how
/// keys of other ranks are found where an axis splits the sequence; where none does it says nothing.
template <bool causal = true, Context context = Context::none, Distributed Q, Distributed K, Distributed V>
constexpr auto attention(const Q& q, const K& k, const V& v, double dropped = 0, Here here = {}) {
  return internals::attend<internals::or_tried(context), causal>(dropped, here, q, k, v);
}
/// The same over the keys where seen[batch, keys], whole numbers, is not zero: padding. A query that sees no key gives
/// zeros.
template <bool causal = false, Context context = Context::none, Distributed Q, Distributed K, Distributed V,
          Distributed S>
constexpr auto masked_attention(const Q& q, const K& k, const V& v, const S& seen, double dropped = 0, Here here = {}) {
  return internals::attend<internals::or_tried(context), causal>(dropped, here, q, k, v, seen);
}
/// The same among documents that are packed one behind the other, without padding: a query sees the keys whose document
/// is its own. documents[batch, sequence]: whole numbers, the same in one document and others in the next, as
/// cumulative_sum<1>(...) of where one begins.
template <bool causal = true, Context context = Context::none, Distributed Q, Distributed K, Distributed V,
          Distributed D>
constexpr auto document_attention(const Q& q, const K& k, const V& v, const D& documents, double dropped = 0,
                                  Here here = {}) {
  return internals::attend<internals::or_tried(context), causal>(dropped, here, q, k, v, documents, documents);
}
/// What is said of which keys are seen among the arguments, or left out: refused.
template <class Bool, Distributed Q, Distributed K, Distributed V>
requires(std::is_same_v<Bool, bool>) constexpr auto attention(const Q& q, const K&, const V&, Bool) {
  static_assert(std::is_void_v<Q>,
                "parallel: whether attention is causal is its template argument, and what stands behind q, k and v a "
                "probability; write attention(q, k, v), which is causal, or attention<false>(q, k, v)");
  return q;
}
template <bool causal = false, Context context = Context::none, Distributed Q, Distributed K, Distributed V>
constexpr auto masked_attention(const Q& q, const K&, const V&) {
  static_assert(
      std::is_void_v<Q>,
      "parallel: masked_attention takes a mask of keys behind q, k and v, whole numbers [batch, keys], not zero "
      "where a key is seen; without one write attention<false>(q, k, v)");
  return q;
}
template <bool causal = true, Context context = Context::none, Distributed Q, Distributed K, Distributed V>
constexpr auto document_attention(const Q& q, const K&, const V&) {
  static_assert(
      std::is_void_v<Q>,
      "parallel: document_attention takes the number of each token's document behind q, k and v, whole numbers "
      "[batch, sequence]; without documents write attention(q, k, v)");
  return q;
}
/// Causal attention of queries that begin at `position`, a whole number, over all positions that k and v have room for:
/// what is generated token by token. The result of a query that stands behind all of them is no number.
template <Distributed Q, Distributed K, Distributed V, Distributed P>
constexpr auto attention_from(const Q& q, const K& k, const V& v, const P& position, Here here = {}) {
  return Apply<operation::attention, true, false, true>{operation::scale_of_scores(Q::type)}(here, q, k, v, position);
}

}  // namespace parallel
