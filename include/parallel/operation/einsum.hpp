// Sums of products by letters, einsum<"bik,kj->bij">(x, w): the text is read by the compiler, and becomes sums,
// transposes, products and reshapes, whose tables and gradients it has.
#pragma once
#include <parallel/operation/cast.hpp>
#include <parallel/operation/matmul.hpp>
#include <parallel/operation/multiply.hpp>
#include <parallel/operation/reduce.hpp>
#include <parallel/operation/reshape.hpp>

namespace parallel {
namespace internals {
namespace einstein {

/// A text as a template argument.
template <std::size_t n>
struct Text {
  char all[n]{};
  constexpr Text(const char (&text)[n]) {
    for (std::size_t i = 0; i < n; ++i) all[i] = text[i];
  }
  constexpr Text(long long) {}  ///< no text: in single quotes it is a number
};
Text(long long)->Text<1>;
/// The letters of a tensor's dimensions, each once.
using Letters = List<char, 52>;

struct Reading {
  List<Letters, max_operands> operands{Letters{}};
  Letters result{};
  Refusal refusal{};
};
/// `text` ends with 0.
constexpr Reading read(const char* text) {
  Reading r;
  bool behind = false;
  for (int i = 0;; ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    Letters& letters = behind ? r.result : r.operands[r.operands.size() - 1];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (letter && letters.contains(c)) {
      r.refusal = {Reason::einsum_twice, {i}};
      return r;
    }
    if (letter) {
      letters.push_back(c);
    } else if (c == ',' && !behind && r.operands.size() < max_operands) {
      r.operands.push_back({});
    } else if (c == '-' && text[i + 1] == '>' && !behind) {
      behind = true;
      ++i;
    } else {
      if (c != 0 || !behind) r.refusal = {Reason::einsum_text, {i, r.operands.size()}};
      return r;
    }
  }
}
/// What is wrong with operands of these types.
constexpr Refusal refused(const Reading& r, const List<Type, max_operands>& types) {
  if (r.refusal) return r.refusal;
  if (r.operands.size() != types.size()) return {Reason::einsum_text, {0, r.operands.size()}};
  for (int i = 0; i < types.size(); ++i)
    if (types[i].layout.rank() != r.operands[i].size())
      return {Reason::wrong_rank, {types[i].layout.rank(), r.operands[i].size()}};
  const auto extent = [&](int i, int d) { return types[i].layout.dims[d].size; };
  for (int i = 0; i < types.size(); ++i)
    for (int d = 0; d < r.operands[i].size(); ++d)
      for (int j = 0; j < i; ++j)
        for (int e = 0; e < r.operands[j].size(); ++e)
          if (r.operands[i][d] == r.operands[j][e] && extent(i, d) != extent(j, e))
            return {Reason::einsum_extents, {extent(j, e), extent(i, d)}};
  for (int d = 0; d < r.result.size(); ++d) {
    bool known = false;
    for (const Letters& o : r.operands) known = known || o.contains(r.result[d]);
    if (!known) return {Reason::einsum_result, {d, r.result.size()}};
  }
  return {};
}

constexpr int place_of(const Letters& letters, char c) {
  int d = 0;
  while (letters[d] != c) ++d;
  return d;
}
constexpr Letters joined(const Letters& a, const Letters& b, const Letters& c = {}) {
  Letters all = a;
  for (const Letters* more : {&b, &c})
    for (const char letter : *more) all.push_back(letter);
  return all;
}
/// For each letter of `to` its dimension in `from`, as of a transpose.
constexpr Ints order_of(const Letters& from, const Letters& to) {
  Ints order;
  for (const char c : to) order.push_back(place_of(from, c));
  return order;
}
/// The letters of one that are in the other, or are not.
constexpr Letters chosen(const Letters& letters, const Letters& others, bool in) {
  Letters some;
  for (const char c : letters)
    if (others.contains(c) == in) some.push_back(c);
  return some;
}
constexpr bool in_order(const Ints& order) {
  for (int d = 0; d < order.size(); ++d)
    if (order[d] != d) return false;
  return true;
}

/// What one operand becomes: dimensions are summed over, then the rest is brought into an order.
struct Prepared {
  Ints summed{}, order{};
};
constexpr Prepared prepared(const Letters& own, const Letters& wanted) {
  return {order_of(own, chosen(own, wanted, false)), order_of(chosen(own, wanted, true), wanted)};
}
/// Two operands: their product is [batch, left, right], a matmul where letters are contracted.
struct Pair {
  Prepared left{}, right{};
  Ints product{};                    ///< of a matmul; none: element by element
  Ints left_shape{}, right_shape{};  ///< element by element: with extents of 1 for the letters of the other
  Ints order{};                      ///< of the result
};
constexpr Pair pair_of(const Letters& x, const Letters& y, const Letters& result, const Layout& of_x,
                       const Layout& of_y) {
  const Letters common = chosen(x, y, true), batch = chosen(chosen(result, x, true), y, true),
                contracted = chosen(common, result, false), left = chosen(chosen(result, x, true), y, false),
                right = chosen(chosen(result, y, true), x, false);
  Pair p;
  p.left = prepared(x, joined(batch, left, contracted));
  p.right = prepared(y, joined(batch, contracted, right));
  p.order = order_of(joined(batch, left, right), result);
  if (!contracted.empty()) {
    // A product takes its operands either way, so that none is transposed that lies in the other.
    const Prepared turned_left = prepared(x, joined(batch, contracted, left)),
                   turned_right = prepared(y, joined(batch, right, contracted));
    const bool left_turns = !in_order(p.left.order) && in_order(turned_left.order),
               right_turns = !in_order(p.right.order) && in_order(turned_right.order);
    if (left_turns) p.left = turned_left;
    if (right_turns) p.right = turned_right;
    p.product = operation::Product(contracted.size(), left_turns, right_turns, batch.size());
    return p;
  }
  const auto extents = [](const Letters& letters, const Letters& of, const Layout& layout, Ints& to) {
    for (const char c : letters) to.push_back(layout.dims[place_of(of, c)].size);
  };
  extents(joined(batch, left), x, of_x, p.left_shape);
  for (int i = 0; i < right.size(); ++i) p.left_shape.push_back(1);
  extents(batch, y, of_y, p.right_shape);
  for (int i = 0; i < left.size(); ++i) p.right_shape.push_back(1);
  extents(right, y, of_y, p.right_shape);
  return p;
}

/// The letters of the product of the first operands up to i: those that are still needed, or the result's.
constexpr Letters kept(const Reading& r, int i) {
  if (i == r.operands.size() - 1) return i > 0 ? r.result : r.operands[0];
  Letters here = r.operands[0], needed = r.result;
  for (int j = 1; j <= i; ++j) here = joined(here, chosen(r.operands[j], here, false));
  if (i == 0) return here;
  for (int j = i + 1; j < r.operands.size(); ++j) needed = joined(needed, chosen(r.operands[j], needed, false));
  return chosen(here, needed, true);
}

/// An operation with a list of attributes.
template <const Operation& operation, const Ints& ints, int... i, class... X>
constexpr auto apply(Here here, std::integer_sequence<int, i...>, const X&... x) {
  return Apply<operation, ints[i]...>{1}(here, x...);
}
template <const Ints& ints>
using Each = std::make_integer_sequence<int, ints.size()>;
template <const Ints& order, class X>
constexpr auto turned(const X& x, Here here) {
  if constexpr (in_order(order))
    return x;
  else
    return apply<operation::transpose, order>(here, Each<order>{}, x);
}
/// The sum over some dimensions, in the element type of x.
template <const Ints& summed, class X>
constexpr auto without(const X& x, Here here) {
  if constexpr (summed.empty())
    return x;
  else if constexpr (is_half(X::type.dtype))
    return cast<typename ElementOf<X::type.dtype>::type>(apply<operation::sum, summed>(here, Each<summed>{}, x), here);
  else
    return apply<operation::sum, summed>(here, Each<summed>{}, x);
}
template <const Ints& shape, class X>
constexpr auto shaped(const X& x, Here here) {
  if constexpr (shape.size() == X::type.layout.rank())
    return x;
  else
    return apply<operation::reshape, shape>(here, Each<shape>{}, x);
}

/// Of a text the step that takes operand i + 1 to the product of those before it.
template <class R, int i, class X, class Y>
struct PairStep {
  static constexpr Pair pair =
      pair_of(kept(R::value, i), R::value.operands[i + 1], kept(R::value, i + 1), X::type.layout, Y::type.layout);
  static constexpr Ints left_summed = pair.left.summed, left_order = pair.left.order, right_summed = pair.right.summed,
                        right_order = pair.right.order, product = pair.product, left_shape = pair.left_shape,
                        right_shape = pair.right_shape, order = pair.order;

  static constexpr auto apply_to(const X& x, const Y& y, Here here) {
    const auto left = turned<left_order>(without<left_summed>(x, here), here);
    const auto right = turned<right_order>(without<right_summed>(y, here), here);
    if constexpr (product.empty())
      return turned<order>(
          Apply<operation::multiply>{}(here, shaped<left_shape>(left, here), shaped<right_shape>(right, here)), here);
    else
      return turned<order>(apply<operation::matmul, product>(here, Each<product>{}, left, right), here);
  }
};
/// One operand alone.
template <class R>
struct Alone {
  static constexpr Prepared how = prepared(R::value.operands[0], R::value.result);
  static constexpr Ints summed = how.summed, order = how.order;
};

template <class R, int i, class X>
constexpr auto contract(Here here, const X& x) {
  if constexpr (i > 0)
    return x;
  else
    return turned<Alone<R>::order>(without<Alone<R>::summed>(x, here), here);
}
template <class R, int i, class X, class Y, class... More>
constexpr auto contract(Here here, const X& x, const Y& y, const More&... more) {
  return contract<R, i + 1>(here, PairStep<R, i, X, Y>::apply_to(x, y, here), more...);
}

template <Text text, class... X>
struct Read {
  static constexpr Reading value = read(text.all);
  static constexpr Refusal refusal = ((X::kind == Kind::refused) || ...) ? Refusal{} : refused(value, {X::type...});
};
/// The refusal of a text, as `checked` asks for it.
template <class R>
struct RefusedText {
  struct Value {
    Refusal refusal{};
  };
  static constexpr Value value{R::refusal};
};
template <Text text, class First, class... X>
constexpr auto einsum(Here here, const First& first, const X&... x) {
  using R = Read<text, First, X...>;
  using accepted [[maybe_unused]] = checked<RefusedText<R>>;
  if constexpr (R::refusal || First::kind == Kind::refused || ((X::kind == Kind::refused) || ...))
    return typename Symbolic<First, Kind::refused>::type{};
  else
    return contract<R, 0>(here, first, x...);
}

}  // namespace einstein
}  // namespace internals

/// einsum<"bik,kj->bij">(x, w): sums of products, a letter for each dimension. A letter that the result does not have
/// is summed over; one that several operands have is of one extent. Up to eight operands, from left to right. Not
/// taken: a letter twice in one operand (a diagonal), "...", and a text without "->".
template <internals::einstein::Text text, Distributed X>
constexpr auto einsum(const X& x, Here here = {}) {
  return internals::einstein::einsum<text>(here, x);
}
template <internals::einstein::Text text, Distributed X, Distributed Y>
constexpr auto einsum(const X& x, const Y& y, Here here = {}) {
  return internals::einstein::einsum<text>(here, x, y);
}
template <internals::einstein::Text text, Distributed X, Distributed Y, Distributed Z>
constexpr auto einsum(const X& x, const Y& y, const Z& z, Here here = {}) {
  return internals::einstein::einsum<text>(here, x, y, z);
}
template <internals::einstein::Text text, Distributed... X>
requires(sizeof...(X) > 3 && sizeof...(X) <= internals::max_operands) constexpr auto einsum(const X&... x) {
  return internals::einstein::einsum<text>(Here{"", 0}, x...);
}

}  // namespace parallel
