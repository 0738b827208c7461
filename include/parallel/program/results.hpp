// What a model gives: one tensor, or several, in a struct of tensors, a std::tuple or a std::pair.
#pragma once
#include <string_view>
#include <tuple>
#include <utility>

#include <parallel/meta/members.hpp>
#include <parallel/model/scan.hpp>
#include <parallel/operation/distributed.hpp>

namespace parallel::internals::building {

/// How many tensors a model gives that returns an R, and whether one of them follows from a mistake; none where an R is
/// neither a tensor nor made of tensors alone.
template <class R>
struct Results {
  static constexpr int count = 0;
};
template <Distributed... Result>
struct SeveralResults {
  static constexpr int count = sizeof...(Result);
  static constexpr bool mistaken = ((Result::kind == Kind::refused) || ...);
};
template <Distributed R>
struct Results<R> : SeveralResults<R> {};
template <Distributed... Result>
struct Results<std::tuple<Result...>> : SeveralResults<Result...> {};
template <Distributed First, Distributed Second>
struct Results<std::pair<First, Second>> : SeveralResults<First, Second> {};
template <class Last, class Each>
struct Results<Scanned<Last, Each>> : SeveralResults<std::remove_const_t<Last>, std::remove_const_t<Each>> {};
template <Distributed... Member>
SeveralResults<std::remove_const_t<Member>...> results_of(const std::tuple<Member&...>&);
template <class R>
requires(std::is_class_v<R> && !Distributed<R> && meta::irregular<R>() < 0 && requires(R & r) {
  results_of(meta::members(r));
}) struct Results<R> : decltype(results_of(meta::members(std::declval<R&>()))) {
};

/// f(tensor, name) of each: of one, the `result`; those of a struct are called as its members, those of a tuple by
/// their positions.
template <class R, class F>
constexpr void each_result(const R& returned, F f) {
  if constexpr (Distributed<R>) {
    f(returned, std::string_view("result"));
  } else if constexpr (requires { std::get<0>(returned); }) {
    constexpr int count = Results<R>::count;
    static_assert(count <= 10, "parallel: a model gives a tuple of more than ten tensors; give a struct of them");
    [&]<int... i>(std::integer_sequence<int, i...>) {
      (f(std::get<i>(returned), std::string_view("0123456789").substr(i, 1)), ...);
    }
    (std::make_integer_sequence<int, count>{});
  } else {
    meta::each_member(returned, [&](const auto& tensor, auto position) {
      f(tensor, meta::member_name<R, decltype(position)::value>);
    });
  }
}

}  // namespace parallel::internals::building
