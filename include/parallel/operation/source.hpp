// Values made from nothing, by global coordinates: constants, counting, random numbers. Each rank makes its own part.
#pragma once
#include <cstddef>
#include <type_traits>

#include <parallel/graph/lowering.hpp>
#include <parallel/operation/apply.hpp>

namespace parallel {
namespace PARALLEL_SHARED operation {
inline constexpr Operation constant{.name = "constant", .source = true};  ///< every element is the first number
/// an element is its coordinate in dimension ints[0]
inline constexpr Operation iota{.name = "iota", .source = true};
PARALLEL_AHEAD constexpr void random_lower(Lowering&);
/// Normal numbers. Operand: scalars; ints: positions of seed and step, number of the call; the first number is the
/// standard deviation.
inline constexpr Operation random{.name = "random", .lower = random_lower, .source = true, .rate = Rate::functions};
PARALLEL_AHEAD constexpr void random_lower(Lowering& l) {
  const std::int64_t seed = l.trace.scalar("seed"), step = l.trace.scalar("step");
  l.result = l.trace.emit(random, {l.trace.graph.scalar_value}, l.results, Kind::data, {seed, step, l.trace.draw()},
                          l.reals[0]);
}
}  // namespace operation

namespace internals {
/// A value without operands. It enters the graph where it first meets a value of the program.
template <const Operation& operation, class T, class S, Kind kind_of_value>
struct Sourced : Arithmetic<Sourced<operation, T, S, kind_of_value>> {
  static_assert(is_element_type<T>,
                "parallel: the element type is none of float, double, bfloat16, float16 and int; use one of them");
  static constexpr Type type = spelling::type_of<T, S>();
  static constexpr Kind kind = kind_of_value;
  double number = 0;
  constexpr Sourced() = default;
  constexpr explicit Sourced(double n) : number(n) {}
  /// Of another type, as a loop over steps begins: refused.
  template <Distributed Y>
  constexpr auto& operator=(const Y& other) {
    using changes [[maybe_unused]] = typename Refused<Y::kind == Kind::refused ? Reason::none : Reason::rebound,
                                                      nullptr, Y::type.layout.rank()>::type;
    if (other.program() != nullptr) other.program()->mistaken = true;
    return *this;
  }
  constexpr Applications* program() const { return nullptr; }
  constexpr int enter(Applications& program) const {
    return program.add(
        {.what = Application::What::source, .operation = &operation, .type = &type, .kind = kind, .first = number});
  }
};

template <const Operation& operation, class T, class S, Kind kind>
inline constexpr bool is_source<Sourced<operation, T, S, kind>> = true;
}  // namespace internals

/// constant<float, Shape<4, 6>>(1.5): every element is this number.
template <class T, class S = Shape<>>
constexpr auto constant(double number) {
  return internals::Sourced<operation::constant, T, S, Kind::constant>(number);
}
/// Of a table: refused.
template <class T, class S = Shape<>, class Table>
requires(!std::is_convertible_v<const Table&, double>) constexpr auto constant(const Table&) {
  static_assert(sizeof(Table) == 0,
                "parallel: a constant is one number everywhere; a table is an input, or a Parameter that is Frozen and "
                "set, and iota<Shape<4>>() counts");
  return typename internals::Symbolic<Tensor<T, S>, Kind::refused>::type{};
}
template <class T, class S = Shape<>, class N, std::size_t n>
requires(n > 1) constexpr auto constant(const N (&table)[n]) { return constant<T, S, N[n]>(table); }
/// iota<Shape<8>>(): 0, 1, 2, ... along the last dimension.
template <class S>
constexpr auto iota() {
  return internals::Sourced<operation::iota, int, S, Kind::constant>();
}
/// Of an element type: refused.
template <class T, class S>
constexpr auto iota() {
  static_assert(sizeof(S) == 0,
                "parallel: iota counts in int; write iota<Shape<4>>(), and cast<float>(iota<Shape<4>>())");
  return typename internals::Symbolic<Tensor<int, S>, Kind::refused>::type{};
}
/// random<float, Shape<4, 6>>(0.1): normal numbers with this standard deviation, new ones every step and every time it
/// is used, the same on every mesh.
template <class T, class S>
constexpr auto random(double deviation = 1) {
  return internals::Sourced<operation::random, T, S, Kind::data>(deviation);
}

}  // namespace parallel
