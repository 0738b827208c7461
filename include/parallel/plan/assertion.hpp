// Assertions that print what they compared on every compiler: clang 14 prints of a failed static_assert nothing but its expression.
//
// A failed one is one error, whose line is a sentence; the lines beside it hold the figures as arguments of the type that owns the sentence.
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

#include <parallel/meta/bytes.hpp>
#include <parallel/plan/plan.hpp>

namespace parallel {

namespace assertion {

/// Every number that a plan answers with. A fraction of a byte, which a ring may send, counts as a byte: no limit is kept by rounding.
struct Figure {
  std::int64_t value = 0;
  constexpr Figure(std::integral auto n) : value(static_cast<std::int64_t>(n)) {}
  constexpr Figure(double n) : value(static_cast<std::int64_t>(n)) { value += static_cast<double>(value) < n ? 1 : 0; }
};

// Names for figures, none of them ever defined.
template <std::int64_t>
struct measured;
template <std::int64_t>
struct expected;
template <std::int64_t>
struct limit;
template <int>
struct row;
template <Phase, class... Figures>
struct found;
template <class... Figures>
struct written;
template <std::int64_t>
struct calls;
template <const Axis*...>
struct on;
template <std::int64_t>
struct bytes;
template <char...>
struct member;
template <int>
struct line;
template <Collective, class... Figures>
struct collective;
struct nothing;

struct Held {
  using type = void;
};
// What a failed one is: asking for its `type` is the one error.
#define PARALLEL_FAILURE(name, sentence)                  \
  template <class... Figures>                             \
  struct name {                                           \
    static_assert(sizeof...(Figures) > 99, sentence);     \
    using type = void;                                    \
  };
PARALLEL_FAILURE(Differs, "parallel::equals: the plan's figure is not the expected one; mend an annotation, or what is expected")
PARALLEL_FAILURE(Above, "parallel::at_most: the plan's figure is above the limit; mend an annotation, or the limit")
PARALLEL_FAILURE(Below, "parallel::at_least: the plan's figure is below the limit; mend an annotation, or the limit")
PARALLEL_FAILURE(Used, "parallel::never: the plan has a collective that it must never have; mend an annotation, or leave the collective out of never(...)")
PARALLEL_FAILURE(NotAllowed, "parallel::uses_only: the plan has a collective that is not among the allowed; mend an annotation, or add the collective to uses_only(...)")
PARALLEL_FAILURE(Otherwise, "parallel::is: the plan's collectives are not the written ones; mend an annotation, or the row that differs")
#undef PARALLEL_FAILURE

template <Path path, class = std::make_index_sequence<static_cast<std::size_t>(path.size())>>
struct Spelt;
template <Path path, std::size_t... i>
struct Spelt<path, std::index_sequence<i...>> {
  using type = member<path.characters[i]...>;  // one by one, because clang 14 prints of an array the first ten numbers
};

/// A row of a plan as a type that every compiler prints.
template <CollectiveRow row, class... More>
constexpr auto printed() {
  if constexpr (row.calls == 0) {
    return static_cast<nothing*>(nullptr);
  } else {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      using Axes = on<row.axes.items[i]...>;
      if constexpr (row.bytes == CollectiveRow::unsaid)
        return static_cast<collective<row.collective, Axes, calls<row.calls>, More...>*>(nullptr);
      else
        return static_cast<collective<row.collective, Axes, calls<row.calls>, bytes<row.bytes>, More...>*>(nullptr);
    }(std::make_index_sequence<static_cast<std::size_t>(row.axes.size())>{});
  }
}
template <CollectiveRow row, class... More>
using Printed = std::remove_pointer_t<decltype(printed<row, More...>())>;

template <Finding finding>
constexpr auto failure() {
  if constexpr (finding) {
    return Held{};
  } else {
    using Seen = found<finding.phase, Printed<finding.found, typename Spelt<finding.member>::type, line<finding.line>>>;
    if constexpr (finding.of == Finding::Of::never)
      return static_cast<Used<Seen>*>(nullptr);
    else if constexpr (finding.of == Finding::Of::uses_only)
      return static_cast<NotAllowed<Seen>*>(nullptr);
    else
      return static_cast<Otherwise<row<finding.row>, Seen, written<Printed<finding.expected>>>*>(nullptr);
  }
}

template <class Failure>
constexpr bool told() {
  using asked [[maybe_unused]] = typename Failure::type;
  return true;  // also of a failed one, so that the static_assert around it is no second error
}

}  // namespace assertion

/// `equals<plan.forward.collectives(tensor), 1>`: as ==, told with both figures.
template <assertion::Figure measured, assertion::Figure expected>
inline constexpr bool equals = assertion::told<
    std::conditional_t<measured.value == expected.value, assertion::Held, assertion::Differs<assertion::measured<measured.value>, assertion::expected<expected.value>>>>();
/// `at_most<plan.sent(data), 5_MiB>`: as <=, told with both figures.
template <assertion::Figure measured, assertion::Figure limit>
inline constexpr bool at_most = assertion::told<
    std::conditional_t<measured.value <= limit.value, assertion::Held, assertion::Above<assertion::measured<measured.value>, assertion::limit<limit.value>>>>();
/// `at_least<plan.calls(), 1>`: as >=, told with both figures.
template <assertion::Figure measured, assertion::Figure limit>
inline constexpr bool at_least = assertion::told<
    std::conditional_t<measured.value >= limit.value, assertion::Held, assertion::Below<assertion::measured<measured.value>, assertion::limit<limit.value>>>>();
/// `proven<plan.never(all_gather(data))>`: of a finding, told with the collective that contradicts.
template <Finding finding>
inline constexpr bool proven = assertion::told<std::remove_pointer_t<decltype(assertion::failure<finding>())>>();

}  // namespace parallel
