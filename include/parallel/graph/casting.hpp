// Values in another element type: each is cast once, and what is cast back is what it was before.
#pragma once
#include <parallel/graph/structure.hpp>

namespace parallel::internals::casting {

struct Cast {
  int value = 0, result = 0;
};

/// What a value was cast from, or -1.
constexpr int cast_from(const Graph& g, int value) {
  const Node& maker = g.maker(value);
  return maker.operation == &operation::cast ? maker.operands[0]
         : maker.is(Structural::rounded)     ? maker.operands[1]
                                             : -1;
}
/// What a value was cast from, if that has this element type and stands for it: all of it was kept, or it was rounded
/// to half of it only. Else -1.
constexpr int before(const Graph& g, int value, DType dtype) {
  const int from = cast_from(g, value);
  const DType now = g.values[value].type.dtype;
  if (from < 0 || g.values[from].type.dtype != dtype || now == DType::i32 || dtype == DType::i32) return -1;
  return bytes_of(now) >= bytes_of(dtype) || is_half(now) ? from : -1;
}
/// Whether a value is a parameter, in whatever element type, or what has been gathered of one.
constexpr bool is_parameter(const Graph& g, int value) {
  const Node& maker = g.maker(value);
  const Transition& t = maker.transition;
  const bool gathers = maker.is(Structural::move) && (t.from.apart() || t.from == OnHost) && t.to.whole();
  return maker.is(Structural::parameter) ||
         ((maker.operation == &operation::cast || maker.is(Structural::layer) || gathers) &&
          is_parameter(g, maker.operands[0]));
}

/// A value in another element type, written where it lives.
template <class Trace>
constexpr int cast(Trace& trace, int value, DType dtype) {
  const Graph& g = trace.graph;
  const Value from = g.values[value];
  if (from.type.dtype == dtype) return value;
  if (const int there = before(g, value, dtype); there >= 0) return there;
  for (const Cast& c : trace.casts)
    if (c.value == value && g.values[c.result].type.dtype == dtype) return c.result;
  const Node& maker = g.maker(value);
  const int term =
      maker.is(Structural::move) && reduces(maker.transition.collective) ? cast_from(g, maker.operands[0]) : -1;
  const bool sum = term >= 0 && g.values[term].type.dtype == dtype;
  List<int, max_node_operands> operands{value};
  if (sum) operands = {term, value};
  const int here = trace.member;
  trace.member = from.member;
  const int result = trace.emit(sum ? operation::rounded : operation::cast, operands, {{dtype, from.type.layout}},
                                from.kind, {}, 0, 0, from.region);
  trace.member = here;
  trace.casts.push_back({value, result});
  trace.shard_like(result, value);
  return result;
}

}  // namespace parallel::internals::casting
