// Draws from split logits: on every mesh the same class, only classes that top_k and top_p leave, as often as softmax
// says.
#include <map>
#include <set>

#include <doctest/doctest.h>

#include <parallel/run/sampling.hpp>

#include "program.hpp"

using namespace parallel;
using namespace parallel::axes;

namespace {
constexpr int rows = 4, classes = 21, columns = 24;  // three columns are padding

template <Among among>
struct Draw {
  Parameter<float, Shape<columns>> unused;
  constexpr auto operator()(Distributed auto logits) const { return sample<among, classes>(logits); }
};
template <Among among>
using Program = Evaluation<Draw<among>, Tensor<float, Shape<rows / data, columns / tensor>>>;

struct Settings {
  double temperature = 1, top_k = 0, top_p = 0;
};
/// A class for every row and step.
template <Among among>
std::vector<std::vector<int>> drawn(const Mesh& mesh, const std::vector<float>& logits, const Settings& how,
                                    int steps) {
  const OwnedPlan plan = derive<Program<among>>(mesh);
  std::vector<std::vector<int>> result(static_cast<std::size_t>(steps), std::vector<int>(rows));
  run_threads(mesh.ranks(), [&](Threads& world) {
    under_test::Parameters parameters(plan, world.rank(), 1);
    Executor<Threads, under_test::Device> executor(plan, world, parameters);
    executor.input(0, logits);
    for (const auto& [name, value] : std::map<std::string, double>{
             {"temperature", how.temperature}, {"top_k", how.top_k}, {"top_p", how.top_p}, {"seed", 7}})
      if (executor.reads(name)) executor.scalar(name, value);
    for (int step = 0; step < steps; ++step) {
      executor.scalar("step", step);
      executor.run();
      std::vector<std::byte> copy;
      const View own = executor.on_host(executor.output(0), copy);
      for (std::int64_t i = 0; i < own.size[0]; ++i)
        if (world.rank() % (mesh.ranks() / mesh.extent(&data)) == 0)
          result[static_cast<std::size_t>(step)][static_cast<std::size_t>(own.offset[0] + i)] = own.as<int>()[i];
    }
  });
  return result;
}

std::vector<float> some_logits() {
  std::vector<float> logits = program::numbers<float>(rows * columns, 1);
  for (float& x : logits) x *= 3;
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = classes; c < columns; ++c) logits[r * columns + c] = 50;  // padding must not be drawn
  logits[5] = logits[6] = logits[7];                                               // equal ones
  return logits;
}
/// Classes of a row by falling probability, with it.
std::vector<std::pair<double, int>> probabilities(const std::vector<float>& logits, int row, double temperature) {
  std::vector<std::pair<double, int>> result;
  double sum = 0;
  for (int c = 0; c < classes; ++c) {
    result.emplace_back(
        std::exp(static_cast<double>(logits[static_cast<std::size_t>(row * columns + c)]) / temperature), c);
    sum += result.back().first;
  }
  for (auto& [p, c] : result) p /= sum;
  std::sort(result.begin(), result.end(),
            [](const auto& a, const auto& b) { return a.first != b.first ? a.first > b.first : a.second < b.second; });
  return result;
}
/// What is left by both limits, by its definition: the k largest with their equals, then the fewest of them that have p
/// of their probability.
std::map<int, double> left(const std::vector<std::pair<double, int>>& all, const Settings& how) {
  std::vector<std::pair<double, int>> kept;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (how.top_k == 0 || static_cast<double>(i) < how.top_k || all[i].first == kept.back().first)
      kept.push_back(all[i]);
  double sum = 0, so_far = 0, last = 0;
  for (const auto& [p, c] : kept) sum += p;
  std::map<int, double> result;
  for (const auto& [p, c] : kept) {
    if (how.top_p > 0 && so_far >= how.top_p * sum && p != last) break;
    result[c] = p;
    so_far += p;
    last = p;
  }
  for (auto& [c, p] : result) p /= so_far;
  return result;
}

template <Among among>
void check(const Settings& how) {
  const std::vector<float> logits = some_logits();
  constexpr int steps = 4000;
  const auto one = drawn<among>(Mesh{data = 1}, logits, how, steps);
  for (int row = 0; row < rows; ++row) {
    const std::map<int, double> expected = left(probabilities(logits, row, how.temperature), how);
    std::map<int, int> times;
    for (const auto& step : one) ++times[step[static_cast<std::size_t>(row)]];
    double chi = 0;
    for (const auto& [c, n] : times) {
      const int taken = c;
      INFO("row " << row << " class " << taken);
      CHECK(expected.contains(taken));
    }
    for (const auto& [c, p] : expected) chi += (times[c] - steps * p) * (times[c] - steps * p) / (steps * p);
    const auto freedom = static_cast<double>(expected.size()) - 1;
    CHECK(chi < freedom + 5 * std::sqrt(2 * freedom) + 10);
  }
  for (const Mesh& mesh : {Mesh{data = 2}, Mesh{tensor = 2}, Mesh{tensor = 3}, Mesh{data = 2, tensor = 4}})
    CHECK(drawn<among>(mesh, logits, how, 50) == std::vector<std::vector<int>>(one.begin(), one.begin() + 50));
}
}  // namespace

TEST_CASE("draws are from softmax, on every mesh the same") {
  check<Among::all>({});
  check<Among::all>({.temperature = 0.5});
}
TEST_CASE("draws are from the k largest") {
  for (const double k : {1.0, 2.0, 5.0, 21.0, 100.0}) check<Among::top_k>({.temperature = 0.8, .top_k = k});
}
TEST_CASE("draws are from the fewest that have probability p") {
  for (const double p : {0.05, 0.5, 0.9, 1.0}) check<Among::top_p>({.temperature = 1.5, .top_p = p});
  check<Among::top_k_and_p>({.temperature = 1, .top_k = 7, .top_p = 0.7});
  check<Among::top_k_and_p>({});
}
TEST_CASE("at temperature 0 the largest is taken, the first of equals") {
  const std::vector<float> logits = some_logits();
  const auto taken = drawn<Among::all>(Mesh{data = 2, tensor = 2}, logits, {.temperature = 0}, 1)[0];
  for (int row = 0; row < rows; ++row)
    CHECK(taken[static_cast<std::size_t>(row)] == probabilities(logits, row, 1)[0].second);
  CHECK(drawn<Among::top_k_and_p>(Mesh{tensor = 2}, logits, {.temperature = 0, .top_k = 3, .top_p = 0.5}, 1)[0] ==
        taken);
}
TEST_CASE("of logits that are no numbers nothing is drawn") {
  std::vector<float> logits = some_logits();
  // x86 makes the second
  for (const float nan : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    logits[3 * columns + 20] = nan;
    for (const double temperature : {0.0, 1.0})
      for (const auto& taken : {drawn<Among::all>(Mesh{tensor = 4}, logits, {temperature}, 1)[0],
                                drawn<Among::top_k>(Mesh{tensor = 4}, logits, {temperature, 3}, 1)[0],
                                drawn<Among::top_k_and_p>(Mesh{tensor = 4}, logits, {temperature, 3, 0.5}, 1)[0]}) {
        CHECK(taken[2] >= 0);
        CHECK(taken[3] == -1);
      }
  }
}
TEST_CASE("a loop's own draw is as often as softmax says, at temperature 0 the likeliest") {
  const std::vector<double> logits{0.5, 2, -1, 2};
  std::map<int, int> times;
  constexpr int draws = 20'000;
  for (std::uint64_t i = 0; i < draws; ++i) ++times[sample_token(logits.data(), 4, 0.7, 3, i)];
  double total = 0;
  for (const double logit : logits) total += std::exp(logit / 0.7);
  for (int v = 0; v < 4; ++v)
    CHECK(times[v] / double{draws} ==
          doctest::Approx(std::exp(logits[static_cast<std::size_t>(v)] / 0.7) / total).epsilon(0.1));
  CHECK(sample_token(logits.data(), 4, 0, 3, 7) == 1);
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (const double temperature : {0.0, 1.0}) {
    CHECK(sample_token(std::vector<float>{0, infinite, 0}.data(), 3, temperature, 3, 7) == 1);
    CHECK(sample_token(std::vector<float>{-infinite, 1, -infinite}.data(), 3, temperature, 3, 7) == 1);
    CHECK(sample_token(std::vector<float>(3, -infinite).data(), 3, temperature, 3, 7) == 0);
  }
  const std::vector<float> none{1, std::numeric_limits<float>::quiet_NaN(), 3};
  CHECK(sample_token(none.data(), 3, 1, 3, 7) == -1);
  const auto said = [&](const double* from, int vocabulary, double temperature) {
    try {
      return std::to_string(sample_token(from, vocabulary, temperature, 3, 7));
    } catch (const Misuse& misuse) {
      return std::string(misuse.what());
    }
  };
  CHECK(said(nullptr, 4, 1) == "a token is drawn of a null pointer; give the logits of one or more");
  CHECK(said(logits.data(), 0, 1) == "a token is drawn of 0 logits; give the logits of one or more");
  CHECK(said(logits.data(), 4, -1) == "a token is drawn at the temperature -1; give a number from 0 on");
}

// Draws from split logits exchange one number a row, and for a threshold four histograms; the logits stay where they
// are.
constexpr auto& of_all = plan<Program<Among::all>, Mesh{data = 2, tensor = 2}>;
static_assert(of_all.forward.collectives(tensor) == 1 && of_all.forward.elements(tensor) == rows / 2);
constexpr auto& of_both = plan<Program<Among::top_k_and_p>, Mesh{data = 2, tensor = 2}>;
static_assert(of_both.forward.collectives(tensor) == 10);
static_assert(of_both.never(all_gather()));
