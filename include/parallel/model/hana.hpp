// What Boost.Hana describes, as models and parts of models: structs that were adapted or defined with it (which may
// have bases, constructors, private members, more than sixteen members), hana::tuple and hana::map of modules. A
// member's name is the struct's, an element's of a tuple its index, of a map its key, a hana::string: "experts.1.up".
#pragma once
#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include <boost/hana/accessors.hpp>
#include <boost/hana/concept/struct.hpp>
#include <boost/hana/core/tag_of.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/map.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/string.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/unpack.hpp>

#include <parallel/algebra/refusal.hpp>
#include <parallel/meta/members.hpp>

namespace parallel::internals::meta {

namespace described {
template <class T, class Tag>
concept Of = std::is_same_v<typename boost::hana::tag_of<std::remove_cvref_t<T>>::type, Tag>;

template <class Key>
constexpr std::string_view text(const Key&) {
  if constexpr (Of<Key, boost::hana::string_tag>)
    return Key::c_str();
  else
    return "";
}
/// A name is a step of a path, "experts.up".
constexpr bool is_step(std::string_view name) { return !name.empty() && name.find_first_of(".*") == name.npos; }

template <std::size_t index>
struct Digits {
  static constexpr std::size_t count = index < 10 ? 1 : index < 100 ? 2 : index < 1000 ? 3 : 4;
  static constexpr std::array<char, count> text = [] {
    std::array<char, count> all{};
    std::size_t rest = index;
    for (std::size_t i = count; i-- > 0; rest /= 10) all[i] = static_cast<char>('0' + rest % 10);
    return all;
  }();
};
}  // namespace described

template <class T>
requires(boost::hana::Struct<T>::value) struct Description<T> {
  static constexpr auto names = boost::hana::unpack(boost::hana::accessors<T>(), [](auto... member) {
    return std::array<std::string_view, sizeof...(member)>{described::text(boost::hana::first(member))...};
  });
  static constexpr auto tie(auto& object) {
    return boost::hana::unpack(boost::hana::accessors<T>(),
                               [&](auto... member) { return std::tie(boost::hana::second(member)(object)...); });
  }
};

template <class... Module>
struct Description<boost::hana::tuple<Module...>> {
  static_assert(sizeof...(Module) <= 10'000, "parallel: a hana::tuple has more than 10,000 modules; take Layers");
  static constexpr auto names = []<std::size_t... i>(std::index_sequence<i...>) {
    return std::array<std::string_view, sizeof...(Module)>{
        std::string_view{described::Digits<i>::text.data(), described::Digits<i>::count}...};
  }
  (std::index_sequence_for<Module...>{});
  static constexpr auto tie(auto& object) {
    return boost::hana::unpack(object, [](auto&... module) { return std::tie(module...); });
  }
};

template <class T>
requires(described::Of<T, boost::hana::map_tag>) struct Description<T> {
  static constexpr auto keys = [] {
    return decltype(boost::hana::unpack(std::declval<T>(), [](const auto&... pair) {
      return std::tuple<std::remove_cvref_t<decltype(boost::hana::first(pair))>...>{};
    })){};
  }();
  static constexpr auto names = std::apply(
      [](const auto&... named) { return std::array<std::string_view, sizeof...(named)>{described::text(named)...}; },
      keys);
  /// The first key that is no step of a path, counted from 1; 0: none.
  static constexpr int nameless = [] {
    const auto at = std::find_if_not(names.begin(), names.end(), described::is_step);
    return at == names.end() ? 0 : static_cast<int>(at - names.begin()) + 1;
  }();
  static constexpr auto tie(auto& object) {
    using accepted [[maybe_unused]] =
        typename Refused<nameless == 0 ? Reason::none : Reason::no_name, nullptr, nameless>::type;
    return boost::hana::unpack(object, [](auto&... pair) { return std::tie(boost::hana::second(pair)...); });
  }
};

}  // namespace parallel::internals::meta
