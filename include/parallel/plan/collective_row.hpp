// Collectives as questions and assertions name them: tensor, all_gather(tensor), 4 * all_reduce(data,
// tensor).of(1_KiB).
#pragma once
#include <concepts>
#include <string>

#include <parallel/algebra/transition.hpp>
#include <parallel/graph/graph.hpp>
#include <parallel/meta/failure.hpp>
#include <parallel/operation/distributed.hpp>
#include <parallel/plan/unknown.hpp>

namespace parallel::internals {

/// Which collectives are meant: of a kind, on axes and, where it is said, with a message of so many bytes. An axis
/// alone means every kind. In a written plan it is one row, as `text` prints it, with the calls of one step.
struct CollectiveRow {
  static constexpr std::int64_t unsaid = -1;

  Collective collective = Collective::retype;  ///< retype, which moves nothing, stands for every kind
  AxisList axes{};                             ///< none: any
  std::int64_t calls = 1;                      ///< in one step; asked only where a plan is written row by row
  std::int64_t bytes = unsaid;                 ///< of one message, as `Communication::message` counts them

  constexpr CollectiveRow() = default;
  constexpr CollectiveRow(const Axis& axis) : axes{&axis} {}
  constexpr CollectiveRow(Collective c, const AxisList& a = {}, std::int64_t times = 1, std::int64_t message = unsaid)
      : collective(c), axes(a), calls(times), bytes(message) {}

  constexpr CollectiveRow of(std::int64_t message) const { return {collective, axes, calls, message}; }

  /// Whether a collective of this kind is among those meant: one on several axes is one on each of them.
  constexpr bool means(Collective kind, const AxisList& on) const {
    for (const Axis* a : axes)
      if (!on.contains(a)) return false;
    return collective == Collective::retype || collective == kind;
  }
};
constexpr CollectiveRow operator*(std::int64_t calls, const CollectiveRow& row) {
  return {row.collective, row.axes, calls, row.bytes};
}

/// What a question that no plan answers gives: asking is the one error.
template <class... X>
constexpr Unknown unasked() {
  using refused [[maybe_unused]] =
      typename Refused<(std::is_same_v<X, Unknown> || ...) ? Reason::none : Reason::no_question, nullptr,
                       std::int64_t{sizeof...(X)}>::type;
  return {};
}

/// `all_gather(tensor)`; without an axis, `all_gather` or `all_gather()`, on any.
struct KindOfCollective {
  Collective collective;
  constexpr operator CollectiveRow() const { return collective; }
  template <class... X>
  constexpr auto operator()(const X&... axes) const {
    if constexpr ((std::same_as<X, Axis> && ...))
      return CollectiveRow{collective, {&axes...}};
    else
      return unasked<X...>();
  }
  /// Of a tensor, in a model: refused.
  template <Distributed X, class... More>
  constexpr auto operator()(const X&, const More&...) const {
    return mistaken<Reason::collective_called, X>();
  }
};
inline constexpr KindOfCollective all_gather{Collective::all_gather};
inline constexpr KindOfCollective all_reduce{Collective::all_reduce};
inline constexpr KindOfCollective reduce_scatter{Collective::reduce_scatter};
inline constexpr KindOfCollective all_to_all{Collective::all_to_all};
inline constexpr KindOfCollective rotate{Collective::rotate};
inline constexpr KindOfCollective broadcast{Collective::broadcast};
inline constexpr KindOfCollective reduce{Collective::reduce};
inline constexpr KindOfCollective offload{Collective::offload};
inline constexpr KindOfCollective fetch{Collective::fetch};

/// Of an axis that neither the mesh has nor the program names there is no answer, 0 would hide a wrong name: a compiler
/// says that this is not constexpr, a run throws it.
[[noreturn]] inline void neither_the_mesh_has_nor_the_program_names(const Axis& axis) {
  throw Failure("a plan is asked about an axis that neither its mesh has nor its program names, " +
                    std::string(axis.text()) + "; take the axis that they have, or leave the question out",
                exit_code::internal);
}

/// What a question is about: nothing, which is all; an axis, a kind, or a row; an axis and a kind.
constexpr CollectiveRow asked(const CollectiveRow& row = {}) { return row; }
constexpr CollectiveRow asked(const Axis& axis, Collective kind) { return {kind, {&axis}}; }
constexpr CollectiveRow asked(const Axis& axis, const KindOfCollective& kind) { return kind(axis); }

/// The collectives of a whole step as somebody wrote them down, in the order in which they start.
struct WrittenPlan {
  List<CollectiveRow, 64> forward{}, backward{}, optimizer{};
};

/// The answer to never, uses_only and is: true, or the first collective that contradicts.
struct [[nodiscard]] Finding {
  enum class Of : std::uint8_t { nothing, never, uses_only, is, foreign };
  Of of = Of::nothing;  ///< what is contradicted; foreign: nothing, as an axis of a row is not the plan's
  Phase phase{};
  int row = 0;                        ///< is: the row that differs, counted from 1
  CollectiveRow expected{{}, {}, 0};  ///< is: the row as it was written; no calls: there is none
  CollectiveRow found{{}, {}, 0};     ///< what the plan has; no calls: nothing; foreign: the row that was asked
  Text<128> member{};                 ///< the member that `found` is charged to; of a longer path both ends
  int line = 0;                       ///< the line in the user's program that asked for it; 0: nobody wrote it
  constexpr explicit operator bool() const { return of == Of::nothing; }
};

}  // namespace parallel::internals

namespace parallel {
using internals::all_gather;
using internals::all_reduce;
using internals::all_to_all;
using internals::broadcast;
using internals::CollectiveRow;
using internals::fetch;
using internals::Finding;
using internals::offload;
using internals::reduce;
using internals::reduce_scatter;
using internals::rotate;
using internals::WrittenPlan;
}  // namespace parallel
