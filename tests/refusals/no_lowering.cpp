// A row communicates, and nothing says what.
// figures: axis<data>, dimensions<2>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr Signatures share_table(const Arguments&) {
  Signature row = split_row({{1, 2}}, {{1, 2}}, 2);
  row.communicates = true;
  return {uniform_row(1, 1, Broadcast), row};
}
constexpr Operation over_sum{.name = "over_sum"};  // (x, sum): x / sum
constexpr void share_lower(Lowering& l) {
  const Ints last{1};
  const Type row = operation::pending_on(operation::statistic(l.type(0), last), l.exchanging);
  const int total = l.exchange(l.emit(operation::sum, {l.operands[0]}, {row}, last, 1), l.exchanging);
  l.result = l.emit(over_sum, {l.operands[0], total}, l.results);
}
#ifdef WRONG
constexpr Operation share{.name = "share", .shape = operation::same_shape, .signatures = share_table};
#else
constexpr Operation share{
    .name = "share", .shape = operation::same_shape, .signatures = share_table, .lower = share_lower};
#endif

struct Model {
  constexpr auto operator()(Distributed auto x) const { return sum(Apply<share>{}(Here{}, x)); }
};
constexpr auto& p = plan<Evaluation<Model, Tensor<float, Shape<4, 8 / data>>>, Mesh{data = 2}>;
