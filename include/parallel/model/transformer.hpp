// What the transformers of this folder share. Their sizes are dimensions with axes, so that a size says how its tensors
// lie: `heads = 12 / tensor` splits attention by heads, `context = 1024 / tensor` keeps the hidden state split along
// the sequence between products.
#pragma once
#include <type_traits>

#include <parallel/model/module.hpp>
#include <parallel/operation/attention.hpp>
#include <parallel/operation/cross_entropy.hpp>
#include <parallel/operation/dropout.hpp>
#include <parallel/operation/embedding.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/norm.hpp>
#include <parallel/operation/operators.hpp>
#include <parallel/operation/remember.hpp>
#include <parallel/operation/reshape.hpp>
#include <parallel/operation/rotary.hpp>
#include <parallel/operation/sample.hpp>
#include <parallel/operation/slice.hpp>

namespace parallel::internals {
/// The first rows of a table of places, [context, channels]: of as many positions as Tokens[batch, positions] have.
template <Distributed Tokens, Distributed Table>
constexpr auto places(const Table& place, Here here = {}) {
  constexpr std::int64_t positions = Tokens::type.layout.dims[1].size;
  if constexpr (positions > Table::type.layout.dims[0].size) {
    static_assert(sizeof(Tokens) == 0,
                  "parallel::models: there are more tokens than the context has positions; mend .context, or the Shape "
                  "of the tokens");
    return typename Symbolic<Table, Kind::refused>::type{};
  } else {
    return slice<0, 0, positions>(place, here);
  }
}
}  // namespace parallel::internals

namespace parallel::models {

/// The next multiple: how large a vocabulary has to be that an axis divides. `padded(50257, 128) / tensor`
constexpr std::int64_t padded(std::int64_t classes, std::int64_t multiple) {
  return (classes + multiple - 1) / multiple * multiple;
}

/// A hidden state x[batch, positions, channels] as it lies between products: split along the sequence as `context` is,
/// whole on every other axis.
template <Dim context, Distributed X>
constexpr auto hidden(const X& x, Here here = {}) {
  constexpr Dim batch = X::type.layout.dims[0], channels = X::type.layout.dims[2].size;
  constexpr Dim positions = [] {
    Dim d = context;
    d.size = X::type.layout.dims[1].size;
    return d;
  }();
  return to<Shape<batch, positions, channels>>(x, here);
}

/// Keys or values [batch, keys, heads, size] of the whole sequence: gathered where an axis splits it.
template <Distributed X>
constexpr auto whole_sequence(const X& x, Here here = {}) {
  return internals::off_sequence<Broadcast>(x, here);
}

/// What is dropped of a hundred: a whole number.
struct Percent {
  int value = 0;
  constexpr Percent(int of_a_hundred) : value(of_a_hundred) {}
  template <class Fraction>
  requires(std::is_floating_point_v<Fraction>) constexpr Percent(Fraction) {
    static_assert(sizeof(Fraction) > 99,
                  "parallel::models: what is dropped is said in percent, a whole number; write .dropped = 10 for 0.1");
  }
  constexpr bool operator==(const Percent&) const = default;
  constexpr bool operator==(int of_a_hundred) const { return value == of_a_hundred; }
  constexpr operator int() const { return value; }
};

/// Causal attention over the sequence itself; `dropped` is the probability of a probability to be dropped.
template <std::int64_t room, Context context = Context::gathered, Distributed Q, Distributed K, Distributed V>
constexpr auto self_attention(const Q& q, const K& k, const V& v, double dropped) {
  return attention<true, context>(q, k, v, dropped);
}
/// The same where the sequence is generated: q, k and v begin at `position`, what came before is remembered, up to
/// `room` positions.
template <std::int64_t room, Context context = Context::gathered, Distributed Q, Distributed K, Distributed V,
          Distributed P>
constexpr auto self_attention(const Q& q, const K& k, const V& v, double, const P& position) {
  return attention_from(q, remember<1, room>(k, position), remember<1, room>(v, position), position);
}

/// Layer norm with gain and shift.
template <std::int64_t channels, class T>
struct LayerNorm {
  Parameter<T, Shape<channels>> gain{ones};
  Parameter<T, Shape<channels>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};

/// Logits of the last position, [batch, vocabulary].
template <Distributed L>
constexpr auto last_position(const L& logits) {
  return take<1, L::type.layout.dims[1].size - 1>(logits);
}
/// Whether something says where a sequence begins: a whole number without dimensions.
template <class X>
concept Position = Distributed<X> && X::type.layout.rank() == 0;

}  // namespace parallel::models
