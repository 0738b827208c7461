// The one way from an operation's verb to the program: types are inferred and refused by the compiler, what was applied
// is noted.
#pragma once
#include <parallel/operation/distributed.hpp>

namespace parallel {
namespace internals {
template <class X>
inline constexpr bool is_source = false;  ///< in no trace yet: source.hpp

template <const Operation& operation, class Attributes, class... X>
struct Inferred;
template <const Operation& operation, std::int64_t... ints, class... X>
struct Inferred<operation, std::integer_sequence<std::int64_t, ints...>, X...> {
  static constexpr Ints attributes{ints...};
  static constexpr Inference value = [] {
    Arguments a;
    (a.types.push_back(X::type), ...);
    (a.kinds.push_back(X::kind), ...);
    a.ints = attributes;
    Inference v = infer(operation, a);
    bool any = sizeof...(X) == 0;
    ((any = any || !is_source<X>), ...);
    if (v.kind != Kind::refused && !any) {
      v.refusal = {Reason::only_sources, {sizeof...(X)}};
      v.kind = Kind::refused;
    }
    return v;
  }();
};
}  // namespace internals

/// One operation with its attributes, ready to be applied.
template <const Operation& operation, std::int64_t... ints>
struct Apply {
  double first = 0, second = 0;  ///< attributes that are no whole numbers

  template <Distributed... X>
  constexpr auto operator()(const internals::Source& where, const X&... x) const {
    using Types = internals::Inferred<operation, std::integer_sequence<std::int64_t, ints...>, X...>;
    using accepted [[maybe_unused]] = internals::checked<Types>;
    using Result = internals::traced_t<Types>;
    if constexpr (Types::value.kind == Kind::refused) {
      return Result{};
    } else {
      internals::Applications* program = nullptr;
      ((program = program != nullptr ? program : x.program()), ...);
      if (program != nullptr && program->dry) ++program->applied;
      if (!notes(program)) return Result{program, -1};
      return Result{program, program->add({.operation = &operation,
                                           .operands = {x.enter(*program)...},
                                           .inferred = &Types::value,
                                           .ints = &Types::attributes,
                                           .first = first,
                                           .second = second,
                                           .where = where})};
    }
  }
  /// With a number among the tensors: refused.
  template <class... Given>
  requires(!(Distributed<Given> && ...)) constexpr auto operator()(const internals::Source&, const Given&...) const {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: an operation is applied to tensors; its numbers stand in braces before them, whole ones in <> "
        "behind the operation; write Apply<operation::softcap, 1>{cap}(here, x)");
    return typename internals::NoResult<Given...>::type{};
  }
  /// Without a place in the source: refused.
  template <Distributed X, class... More>
  constexpr auto operator()(const X&, const More&...) const {
    return internals::mistaken<Reason::no_here, X, 1 + static_cast<int>(sizeof...(More))>();
  }
};

}  // namespace parallel
