// Assertions that print what they compared on every compiler: clang 14 prints of a failed static_assert nothing but its
// expression.
//
// A failed one is one error, whose line is a sentence; the lines beside it hold the figures as arguments of the type
// that owns the sentence.
#pragma once
#include <compare>
#include <concepts>
#include <type_traits>
#include <utility>

#include <parallel/meta/bytes.hpp>
#include <parallel/plan/refused_plan.hpp>

namespace parallel {

namespace assertion {

/// Every number that a plan answers with. Of what a ring sends a rank may have a third of a byte; what floating point
/// only just misses is whole.
struct Figure {
  std::int64_t whole = 0;
  int millionths = 0;
  constexpr Figure(std::integral auto n) : whole(static_cast<std::int64_t>(n)) {}
  constexpr Figure(std::floating_point auto f) {
    const double n = static_cast<double>(f);
    whole = static_cast<std::int64_t>(n + 0.5);
    const double over = n - static_cast<double>(whole), slack = 5e-7 + 1e-15 * n;
    if (-slack <= over && over <= slack) return;
    whole -= over < 0 ? 1 : 0;
    millionths = static_cast<int>((n - static_cast<double>(whole)) * 1e6);
  }
  constexpr Figure(internals::Unknown) : whole(unknown) {}  // of a refused plan, which passes every assertion
  constexpr Figure(const Finding&) : whole(none) {}
  // nvcc builds template arguments from their members in order
  constexpr Figure(std::int64_t n, int m) : whole(n), millionths(m) {}
  constexpr auto operator<=>(const Figure&) const = default;

  static constexpr std::int64_t unknown = -1, none = -2;
  constexpr bool known() const { return whole != unknown; }
};

/// What stands first in at_most and at_least. A literal is an int, as no answer of a plan about what it moves or holds is.
struct OfPlan {
  Figure figure;
  template <class Number>
  constexpr OfPlan(Number n) : figure(std::is_same_v<Number, int> ? Figure(Figure::unknown, 0) : Figure(n)) {
    static_assert(!std::is_same_v<Number, int>,
                  "parallel: at_most and at_least take the plan's figure, then the limit; write "
                  "at_most<plan.peak_memory(), 64_KiB>");
  }
  constexpr OfPlan(const Figure& f) : figure(f) {}
};

// Names for figures, none of them ever defined.
template <std::int64_t, class...>
struct measured;
template <std::int64_t, class...>
struct expected;
template <std::int64_t, class...>
struct limit;
template <int>
struct millionths;
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

// What a failed one is: asking for its `type` is the one error.
#define PARALLEL_FAILURE(name, sentence)              \
  template <class... Figures>                         \
  struct name {                                       \
    static_assert(sizeof...(Figures) > 99, sentence); \
    using type = void;                                \
  };
// clang-format off
PARALLEL_FAILURE(Differs, "parallel::equals: the plan's figure is not the expected one; mend an annotation, or what is expected")
PARALLEL_FAILURE(Above, "parallel::at_most: the plan's figure, which stands first, is above the limit; mend an annotation, or the limit")
PARALLEL_FAILURE(Below, "parallel::at_least: the plan's figure, which stands first, is below the limit; mend an annotation, or the limit")
PARALLEL_FAILURE(Used, "parallel: the plan has a collective that never(...) excludes; mend an annotation, or take it out there")
PARALLEL_FAILURE(NotAllowed, "parallel: the plan has a collective that uses_only(...) does not allow; mend an annotation, or add it there")
PARALLEL_FAILURE(Otherwise, "parallel: the plan's collectives are not the rows of is(...); mend an annotation, or the row that differs")
PARALLEL_FAILURE(Foreign, "parallel: a plan is asked about an axis that neither its mesh has nor its program names; take the axis that they have, or leave the question out")
PARALLEL_FAILURE(Misused, "parallel: an assertion is misused; numbers stand in equals<measured, expected>, at_most or at_least, and never(...), uses_only(...) and is(...) in proven<...>")
// clang-format on
#undef PARALLEL_FAILURE

template <bool held, class Failure>
constexpr bool told() {
  if constexpr (!held) {
    using asked [[maybe_unused]] = typename Failure::type;
  }
  return true;  // also of a failed one, so that the static_assert around it is no second error
}

template <template <std::int64_t, class...> class name, Figure n>
struct Named {
  using type = name<n.whole, millionths<n.millionths>>;
};
template <template <std::int64_t, class...> class name, Figure n>
requires(n.millionths == 0) struct Named<name, n> {
  using type = name<n.whole>;
};
template <Figure n>
using Measured = typename Named<measured, n>::type;
template <Figure n>
using Expected = typename Named<expected, n>::type;
template <Figure n>
using Limit = typename Named<limit, n>::type;

template <auto path, class = std::make_index_sequence<static_cast<std::size_t>(path.size())>>
struct Spelt;
template <auto path, std::size_t... i>
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
    }
    (std::make_index_sequence<static_cast<std::size_t>(row.axes.size())>{});
  }
}
template <CollectiveRow row, class... More>
using Printed = std::remove_pointer_t<decltype(printed<row, More...>())>;

template <Finding finding>
constexpr auto failure() {
  using Seen = found<finding.phase, Printed<finding.found, typename Spelt<finding.member>::type, line<finding.line>>>;
  if constexpr (finding.of == Finding::Of::foreign)
    return static_cast<Foreign<Printed<finding.found>>*>(nullptr);
  else if constexpr (finding.of == Finding::Of::never)
    return static_cast<Used<Seen>*>(nullptr);
  else if constexpr (finding.of == Finding::Of::uses_only)
    return static_cast<NotAllowed<Seen>*>(nullptr);
  else
    return static_cast<Otherwise<row<finding.row>, Seen, written<Printed<finding.expected>>>*>(nullptr);
}

template <Figure measured, Figure other, bool held, class Failure>
constexpr bool compared() {
  if constexpr (measured.whole == Figure::none || other.whole == Figure::none)
    return told<false, Misused<Measured<measured>>>();
  else
    return told < !measured.known() || held, Failure > ();
}
template <auto finding>
constexpr bool found_true() {
  using Given = std::remove_cvref_t<decltype(finding)>;  // nvcc says that an argument of class type is a reference
  if constexpr (std::is_same_v<Given, Finding>)
    return told<static_cast<bool>(finding), std::remove_pointer_t<decltype(failure<finding>())>>();
  else
    return told<std::is_same_v<Given, internals::Unknown>, Misused<Given>>();
}
inline constexpr Figure none{Figure::none, 0};

}  // namespace assertion

/// `equals<plan.forward.collectives(tensor), 1>`: as ==, told with both figures.
template <assertion::Figure measured, assertion::Figure expected = assertion::none>
inline constexpr bool equals =
    assertion::compared<measured, expected, measured == expected,
                        assertion::Differs<assertion::Measured<measured>, assertion::Expected<expected>>>();
/// `at_most<plan.sent(data), 5_MiB>`: as <=, told with both figures.
template <assertion::OfPlan measured, assertion::Figure limit = assertion::none>
inline constexpr bool at_most =
    assertion::compared<measured.figure, limit, measured.figure <= limit,
                        assertion::Above<assertion::Measured<measured.figure>, assertion::Limit<limit>>>();
/// `at_least<plan.calls(), 1>`: as >=, told with both figures.
template <assertion::OfPlan measured, assertion::Figure limit = assertion::none>
inline constexpr bool at_least =
    assertion::compared<measured.figure, limit, measured.figure >= limit,
                        assertion::Below<assertion::Measured<measured.figure>, assertion::Limit<limit>>>();
/// `proven<plan.never(all_gather(data))>`: of a finding, told with the collective that contradicts.
template <auto finding>
inline constexpr bool proven = assertion::found_true<finding>();

}  // namespace parallel
