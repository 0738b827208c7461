// A draw from logits whose vocabulary may be split: temperature, the k largest, the smallest set that has probability
// p. No rank ever holds the logits of another.
#pragma once
#include <parallel/operation/cross_entropy.hpp>

namespace parallel {

/// Among which classes is drawn.
enum class Among : std::uint8_t { all, top_k, top_p, top_k_and_p };

namespace PARALLEL_SHARED operation {
// logits[..., V]   result[...] S, not last      S S, last          I             exchanges the largest of the ranks'
// draws, and to find a threshold histograms of 256 numbers
//
// Noise from Gumbel's distribution is added to logits, and the largest is taken: that is a draw from their softmax
// (Gumbel, 1954; Maddison et al., 2014), and the largest of several ranks is the largest of their largest. Thresholds
// are found digit by digit: the bits of a logit, turned so that they order as it does, are four digits of a number, and
// a histogram of one digit over all ranks says which digit the threshold has.
inline constexpr int sample_digits = 4, sample_bins = 256;
inline constexpr std::int64_t most_classes = 1 << 21;  ///< what stands beside 32 bits of a logit in a double

PARALLEL_AHEAD constexpr Shaped sample_shape(const Arguments& a) {
  Type result{DType::i32, a.types[0].layout.unplaced()};
  if (a.rank(0) < 1) return {{result}, {Reason::wrong_rank, {a.rank(0), 1}}};
  const std::int64_t classes = a.size(0, a.rank(0) - 1);
  --result.layout.dims.count;
  if (const Refusal refusal = counted(a, 0, a.rank(0) - 1)) return {{result}, refusal};
  if (classes > most_classes) return {{result}, {Reason::slice_range, {0, classes, most_classes}}};
  if (a.ints[1] < 1 || a.ints[1] > classes) return {{result}, {Reason::slice_range, {0, a.ints[1], classes}}};
  return {{result}, {}};
}
PARALLEL_AHEAD constexpr Signatures sample_table(const Arguments& a) {
  Signatures rows{uniform_row(1, 1, Broadcast)};
  for (int d = 0; d + 1 < a.rank(0); ++d)
    if (a.size(0, d) > 1) rows.push_back({{split(d)}, {split(d)}});
  if (a.size(0, a.rank(0) - 1) > 1) rows.push_back({{split(a.rank(0) - 1)}, {Invariant}, true});
  return rows;
}
PARALLEL_AHEAD constexpr void sample_lower(Lowering&);
/// ints: Among, and how many of the logits are classes.
inline constexpr Operation sample{
    .name = "sample", .shape = sample_shape, .signatures = sample_table, .lower = sample_lower};

/// The attributes of what it becomes: digit, whether masses are added up and not counts, how many are classes,
/// positions of scalars.
struct Drawing {
  std::int64_t digit, by_mass, classes, temperature, limit, seed, step, draw;
  constexpr operator Ints() const { return {digit, by_mass, classes, temperature, limit, seed, step, draw}; }
  constexpr Drawing(std::int64_t c, std::int64_t t)
      : digit(0), by_mass(0), classes(c), temperature(t), limit(0), seed(0), step(0), draw(0) {}
  constexpr Drawing(const Ints& i)
      : digit(i[0]), by_mass(i[1]), classes(i[2]), temperature(i[3]), limit(i[4]), seed(i[5]), step(i[6]), draw(i[7]) {}
};
/// (logits, scalars[, max][, state][, floor]): how many logits, or where masses are added up how much of exp((logit -
/// max) / temperature), has which value of a digit, of those whose digits before are the state's and which are not
/// below the floor. f64[..., 256]
inline constexpr Operation digit_histogram{.name = "digit_histogram", .flops = elements_of_operand};
/// (histogram, scalars[, state]): one more digit of the threshold, and how much of the limit is left for the digits
/// behind it. f64[..., 2]
inline constexpr Operation narrow{.name = "narrow", .flops = elements_of_operand};
/// (logits, scalars[, state]): the largest perturbed logit of those not below the threshold, and behind it its class,
/// as one number. f64[...]
inline constexpr Operation draw{.name = "draw", .flops = elements_of_operand};
inline constexpr Operation drawn{.name = "drawn"};  ///< the class of a draw

PARALLEL_AHEAD constexpr void sample_lower(Lowering& l) {
  const int logits = l.operands[0];
  const Among among = static_cast<Among>(l.ints[0]);
  Drawing how(l.ints[1], l.trace.scalar("temperature"));
  Type row = statistic(l.type(0), {l.type(0).layout.rank() - 1});
  row.dtype = DType::f64;
  const auto with = [&](std::int64_t last) {
    Type type = row;
    type.layout.dims.push_back(Dim(last));
    return type;
  };
  int threshold = -1;
  for (const bool by_mass : {false, true}) {
    if (among != Among::top_k_and_p && among != (by_mass ? Among::top_p : Among::top_k)) continue;
    how.by_mass = by_mass;
    how.limit = l.trace.scalar(by_mass ? "top_p" : "top_k");
    const int floor = threshold;
    int largest = -1;
    if (by_mass) {
      Type statistic = row;
      statistic.dtype = l.type(0).dtype;
      largest = l.emit(class_maximum, {logits}, {pending_on(statistic, l.exchanging)}, {how.classes, no_target});
      largest = l.exchange(largest, l.exchanging, true);
    }
    for (int digit = 0; digit < sample_digits; ++digit) {
      how.digit = digit;
      List<int, max_node_operands> counted{logits, l.trace.graph.scalar_value},
          narrowed{-1, l.trace.graph.scalar_value};
      if (by_mass) counted.push_back(largest);
      if (digit > 0) {
        counted.push_back(threshold);
        narrowed.push_back(threshold);
      }
      if (floor >= 0) counted.push_back(floor);
      const int own = l.emit(digit_histogram, counted, {pending_on(with(sample_bins), l.exchanging)}, how);
      narrowed[0] = l.exchange(own, l.exchanging);
      threshold = l.emit(narrow, narrowed, {with(2)}, how);
    }
  }
  how.seed = l.trace.scalar("seed");
  how.step = l.trace.scalar("step");
  how.draw = l.trace.draw();
  List<int, max_node_operands> operands{logits, l.trace.graph.scalar_value};
  if (threshold >= 0) operands.push_back(threshold);
  const int own = l.emit(draw, operands, {pending_on(row, l.exchanging)}, how);
  l.result = l.emit(drawn, {l.exchange(own, l.exchanging, true)}, l.results);
}
}  // namespace operation

/// A class for every row of logits[..., V]: drawn from softmax(logits / temperature) by seed, step and the row's place,
/// so that every mesh draws the same; the largest where the temperature is 0. Scalars: `temperature`; `top_k`, among
/// how many of the largest (ties included) is drawn; `top_p`, of what probability the classes together must be at least
/// among which is drawn (Holtzman et al., 2020), after top_k; 0 for either is all. `classes`: how many of the logits
/// there are, if those behind them are padding. -1 where a logit is no number.
template <Among among = Among::all, std::int64_t classes = 0, Distributed L>
constexpr auto sample(const L& logits, Here here = {}) {
  constexpr int rank = L::type.layout.rank();
  constexpr std::int64_t count = classes > 0 || rank == 0 ? classes : L::type.layout.dims[rank > 0 ? rank - 1 : 0].size;
  return Apply<operation::sample, static_cast<int>(among), count>{}(here, logits);
}

}  // namespace parallel
