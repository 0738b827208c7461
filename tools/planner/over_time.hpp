// The memory of a rank over a step: of each phase its fullest moment, by use; by member what is held at a moment; and
// the whole course of a step.
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include <parallel/question/moment.hpp>
#include <parallel/question/text.hpp>

namespace planner {

using namespace parallel;
using namespace parallel::internals;

namespace over_time {
inline std::string bytes(std::int64_t n) { return printing::bytes(static_cast<double>(n)); }
/// A cell for each use that any of the moments has, and headings of these.
struct Columns {
  std::vector<int> uses{};

  template <class Moments>
  explicit Columns(const Moments& moments) {
    for (int u = 0; u < internals::uses; ++u)
      if (std::any_of(moments.begin(), moments.end(), [&](const auto& m) { return m.by_use[u] > 0; }))
        uses.push_back(u);
  }
  void head(printing::Row& row) const {
    for (const int u : uses) row.cells.emplace_back(internals::name_of(static_cast<Use>(u)));
  }
  void cells(printing::Row& row, const std::int64_t (&by_use)[internals::uses]) const {
    for (const int u : uses) row.cells.push_back(by_use[u] > 0 ? bytes(by_use[u]) : "-");
  }
};
}  // namespace over_time

/// A row for what is held all the time and one for each phase, at its fullest moment.
inline std::string phases_then(const Plan& plan) {
  using namespace over_time;
  struct Of {
    std::string name;
    Moment moment;
  };
  const Vector<Moment> all = moments(plan);
  std::vector<Of> rows{{"at rest", at_rest(plan)}};
  std::vector<Moment> shown{rows[0].moment};
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    const auto of_phase = [&](int event) {
      return event < static_cast<int>(plan.events.size()) &&
             plan.graph.node(plan.events[static_cast<std::size_t>(event)].node).phase == phase;
    };
    if (std::none_of(all.begin(), all.end(), [&](const Moment& m) { return of_phase(m.event); })) continue;
    rows.push_back({std::string(parallel::name_of(phase)), fullest(plan, all, of_phase)});
    shown.push_back(rows.back().moment);
  }
  const Columns columns(shown);
  printing::Table table{{23}, {{{"memory at most"}}}};
  columns.head(table.rows[0]);
  table.rows[0].cells.emplace_back("together");
  for (const Of& row : rows) {
    table.rows.push_back({{"  " + row.name}});
    columns.cells(table.rows.back(), row.moment.by_use);
    table.rows.back().cells.push_back(bytes(row.moment.bytes()));
  }
  return table.text();
}

/// A row for each member to which something is charged that is held at a moment, the largest first.
inline std::string members_then(const Plan& plan, const Moment& moment) {
  using namespace over_time;
  struct Of {
    int member = -1;
    std::int64_t by_use[internals::uses]{}, bytes = 0;
  };
  std::vector<Of> rows;
  for (const Charge& c : charges(plan, allocations(plan), moment.event)) {
    auto row = std::find_if(rows.begin(), rows.end(), [&](const Of& r) { return r.member == c.member; });
    if (row == rows.end()) row = rows.insert(rows.end(), Of{c.member});
    row->by_use[static_cast<int>(c.use)] += c.bytes;
    row->bytes += c.bytes;
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Of& a, const Of& b) { return a.bytes > b.bytes; });
  constexpr std::size_t most = 12;
  const std::vector<Moment> shown{moment};
  const Columns columns(shown);
  printing::Table table{{}, {{{"charged to"}}}};
  columns.head(table.rows[0]);
  table.rows[0].cells.emplace_back("together");
  Of others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows.size() > most && i + 1 >= most) {
      for (int u = 0; u < internals::uses; ++u) others.by_use[u] += rows[i].by_use[u];
      others.bytes += rows[i].bytes;
      continue;
    }
    const int m = rows[i].member;
    table.rows.push_back({{m < 0 ? "-" : std::string(plan.graph.path(m))}});
    columns.cells(table.rows.back(), rows[i].by_use);
    table.rows.back().cells.push_back(bytes(rows[i].bytes));
  }
  if (others.bytes > 0) {
    table.rows.push_back({{std::to_string(rows.size() - most + 1) + " more"}});
    columns.cells(table.rows.back(), others.by_use);
    table.rows.back().cells.push_back(bytes(others.bytes));
  }
  if (moment.scalars > 0) {
    table.rows.push_back({{"scalars"}});
    table.rows.back().cells.resize(columns.uses.size() + 1);
    table.rows.back().cells.push_back(bytes(moment.scalars));
  }
  table.rows.push_back({{"together"}});
  columns.cells(table.rows.back(), moment.by_use);
  table.rows.back().cells.push_back(bytes(moment.bytes()));
  return table.text();
}

}  // namespace planner
