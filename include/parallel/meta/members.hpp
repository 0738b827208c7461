// The members of a struct and their names, from the struct itself: no macro, so no member can be forgotten or misspelt.
#pragma once
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include <parallel/meta/letters.hpp>

namespace parallel::internals::meta {

struct Any {
  template <class T>
  operator T() const;
};

inline constexpr int max_members = 16;

/// The members of a type that says them itself: `tie(object)` is a std::tuple of references, `names` an array of as
/// many std::string_view. model/hana.hpp says it of what Boost.Hana describes; of all other types they are found.
template <class T>
struct Description;
template <class T>
concept Described = requires {
  Description<T>::names.size();
};

template <class T, std::size_t... i>
constexpr bool initialized_by(std::index_sequence<i...>) {
  return requires { T{(static_cast<void>(i), Any{})...}; };
}
/// How many members an aggregate has, up to max_members.
template <class T, int n = max_members>
constexpr int member_count() {
  if constexpr (Described<T>)
    return static_cast<int>(Description<T>::names.size());
  else if constexpr (n == 0)
    return 0;
  else if constexpr (initialized_by<T>(std::make_index_sequence<std::size_t{n}>{}))
    return n;
  else
    return member_count<T, n - 1>();
}

/// Converts to nothing but a base class of T.
template <class T>
struct Base {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>) operator U() const;
};
template <class T, std::size_t... before, std::size_t... behind>
constexpr bool takes_nothing_at(std::index_sequence<before...>, std::index_sequence<behind...>) {
  return requires { T{(static_cast<void>(before), Any{})..., {}, (static_cast<void>(behind), Any{})...}; };
}
/// nvcc takes the sequences of this not within an expansion.
template <class T, std::size_t before, std::size_t behind>
constexpr bool takes_nothing() {
  return takes_nothing_at<T>(std::make_index_sequence<before>{}, std::make_index_sequence<behind>{});
}
/// What of a class is no plain member that members() can name: -1 nothing; 0 the class itself, which has a constructor,
/// a base, or a member that is private, const or a reference; else the position of an array, counted from 1. An array
/// takes an initializer for each of its elements, but one empty one for all.
template <class T>
constexpr int irregular() {
  if constexpr (Described<T>) {
    return -1;
  } else if constexpr (!std::is_aggregate_v<T> || !std::is_move_assignable_v<T> || requires { T{Base<T>{}}; }) {
    return 0;
  } else if constexpr (member_count<T>() == 0) {
    return -1;
  } else {
    constexpr int n = member_count<T>();
    return []<std::size_t... i>(std::index_sequence<i...>) {
      int position = 0;
      const bool plain[] = {takes_nothing<T, i, std::size_t{n} - 1 - i>()..., true};
      while (position < n && plain[position]) ++position;
      return position < n ? position + 1 : -1;
    }
    (std::make_index_sequence<std::size_t{n}>{});
  }
}
template <class T>
constexpr bool too_many_members() {
  return !Described<T> && initialized_by<T>(std::make_index_sequence<max_members + 1>{});
}

template <int n>
using Count = std::integral_constant<int, n>;
constexpr decltype(auto) decompose(auto&, auto& f, Count<0>) { return f(); }
constexpr decltype(auto) decompose(auto& object, auto& f, Count<1>) {
  auto& [a] = object;
  return f(a);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<2>) {
  auto& [a, b] = object;
  return f(a, b);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<3>) {
  auto& [a, b, c] = object;
  return f(a, b, c);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<4>) {
  auto& [a, b, c, d] = object;
  return f(a, b, c, d);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<5>) {
  auto& [a, b, c, d, e] = object;
  return f(a, b, c, d, e);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<6>) {
  auto& [a, b, c, d, e, g] = object;
  return f(a, b, c, d, e, g);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<7>) {
  auto& [a, b, c, d, e, g, h] = object;
  return f(a, b, c, d, e, g, h);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<8>) {
  auto& [a, b, c, d, e, g, h, i] = object;
  return f(a, b, c, d, e, g, h, i);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<9>) {
  auto& [a, b, c, d, e, g, h, i, j] = object;
  return f(a, b, c, d, e, g, h, i, j);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<10>) {
  auto& [a, b, c, d, e, g, h, i, j, k] = object;
  return f(a, b, c, d, e, g, h, i, j, k);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<11>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<12>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l, m] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l, m);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<13>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l, m, o] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l, m, o);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<14>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l, m, o, p);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<15>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q);
}
constexpr decltype(auto) decompose(auto& object, auto& f, Count<16>) {
  auto& [a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r] = object;
  return f(a, b, c, d, e, g, h, i, j, k, l, m, o, p, q, r);
}
/// f(member...) of all members of an aggregate, in the order of the struct.
template <class T, class F>
constexpr decltype(auto) with_members(T& object, F f) {
  if constexpr (Described<std::remove_const_t<T>>)
    return std::apply(f, Description<std::remove_const_t<T>>::tie(object));
  else
    return decompose(object, f, Count<member_count<std::remove_const_t<T>>()>{});
}
/// References to all members, in the order of the struct.
template <class T>
constexpr auto members(T& object) {
  return with_members(object, [](auto&... all) { return std::tie(all...); });
}
/// Calls f(member, std::integral_constant<int, position>) for every member.
template <class T, class F>
constexpr void each_member(T& object, F f) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    const auto all = members(object);
    static_cast<void>(all);
    (f(std::get<i>(all), std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, member_count<std::remove_const_t<T>>()>{});
}

/// A T that is never made: only the spelling of its members' addresses is looked at. It is defined, so that a model may
/// be without linkage; nvcc knows no addresses within a union.
#if defined(__CUDACC__)
template <class T>
struct Unmade {
  T object;
};
template <class T>
extern const Unmade<T> instance;
#else
template <class T>
union Unmade {
  char nothing = 0;
  T object;
};
template <class T>
inline constexpr Unmade<T> instance{};
#endif

/// Clang 14 takes the address of a member as a template argument only inside a struct.
template <class T>
struct Pointer {
  const T* to;
};
template <class T>
Pointer(const T*) -> Pointer<T>;

template <int position>
constexpr auto pointer(const auto& object) {
  return Pointer{&std::get<position>(members(object))};
}
template <auto pointer>
constexpr std::string_view spelling() {
  // nvcc leaves NULs in it, so its length is taken from the array
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}
/// The name of a member, cut from "... instance<Mlp<768> >.object.Mlp<768>::down)} ..." or "...
/// {&instance.object.down}]".
template <class T, int position>
constexpr std::string_view find_member_name() {
  if constexpr (Described<T>) {
    return Description<T>::names[static_cast<std::size_t>(position)];
  } else {
    const auto text = spelling<pointer<position>(instance<T>.object)>();
    std::size_t end = text.size() - 1;
    while (text[end] != '}' || (text[end - 1] != ')' && text[end + 1] != ']')) --end;
    if (text[end - 1] == ')') --end;
    std::size_t begin = end;
    while (text[begin - 1] != '.' && text[begin - 1] != ':') --begin;
    return text.substr(begin, end - begin);
  }
}
/// A variable, so that a compiler finds it once however often it is asked.
template <class T, int position>
inline constexpr std::string_view member_name = find_member_name<T, position>();

}  // namespace parallel::internals::meta
