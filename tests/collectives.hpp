// What a plan sends, counted the way the tables of the documents are: logical collectives by kind, and the elements of
// all of one kind together.
#pragma once
#include <parallel/parallel.hpp>

struct Collectives {
  std::int64_t all_reduce = 0, reduced = 0;
  std::int64_t all_gather = 0, gathered = 0;
  std::int64_t reduce_scatter = 0, scattered = 0;
  std::int64_t others = 0;
  constexpr bool operator==(const Collectives&) const = default;
};

constexpr Collectives on(const parallel::Axis& axis, const parallel::Communication& phase) {
  using parallel::Collective;
  Collectives c;
  c.all_reduce = phase.collectives(axis, Collective::all_reduce);
  c.reduced = phase.elements(axis, Collective::all_reduce);
  c.all_gather = phase.collectives(axis, Collective::all_gather);
  c.gathered = phase.elements(axis, Collective::all_gather);
  c.reduce_scatter = phase.collectives(axis, Collective::reduce_scatter);
  c.scattered = phase.elements(axis, Collective::reduce_scatter);
  c.others = phase.collectives(axis) - c.all_reduce - c.all_gather - c.reduce_scatter;
  return c;
}
