// The order of samples: each once an epoch, whatever the batch; uniform; the same where a training goes on. Windows of
// tokens; batches that a thread makes.
#include <atomic>
#include <chrono>
#include <map>
#include <numeric>
#include <set>

#include <parallel/data/prefetch.hpp>
#include <parallel/data/rows.hpp>
#include <parallel/data/sampler.hpp>
#include <parallel/data/windows.hpp>
#include <parallel/parallel.hpp>

#include "files.hpp"

using namespace parallel;
using namespace parallel::axes;
using internals::Permutation;

namespace {

TEST_CASE("every sample once an epoch, for every number of samples and every batch") {
  long wrong = 0;
  for (std::int64_t n = 1; n <= 200; ++n)
    for (std::int64_t batch = 1; batch <= n + 3; batch += n > 60 ? 7 : 1)
      for (const LastBatch last : {LastBatch::dropped, LastBatch::padded}) {
        if (last == LastBatch::dropped && n < batch) continue;
        const Sampler sampler(n, batch, {.seed = 3, .last = last});
        const std::int64_t steps = sampler.steps_per_epoch();
        wrong += steps != (last == LastBatch::dropped ? n / batch : (n + batch - 1) / batch);
        for (const std::int64_t epoch : {0, 1}) {
          std::set<std::int64_t> seen;
          std::int64_t none = 0;
          for (std::int64_t step = epoch * steps; step < (epoch + 1) * steps; ++step) {
            wrong += sampler.epoch(step) != epoch;
            for (const std::int64_t sample : sampler.samples(step))
              if (sample == no_sample)
                ++none;
              else
                wrong += sample < 0 || sample >= n || !seen.insert(sample).second;
          }
          const auto count = static_cast<std::int64_t>(seen.size());
          wrong += count != (last == LastBatch::dropped ? steps * batch : n) || none != steps * batch - count;
        }
      }
  CHECK(wrong == 0);
}

std::vector<std::uint64_t> order(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const Permutation permutation(n, seed, epoch);
  std::vector<std::uint64_t> all(n);
  for (std::uint64_t i = 0; i < n; ++i) all[i] = permutation(i);
  return all;
}
double chi_square(const std::vector<long>& counts) {
  const double expected =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), 0L)) / static_cast<double>(counts.size());
  double sum = 0;
  for (const long c : counts)
    sum += (static_cast<double>(c) - expected) * (static_cast<double>(c) - expected) / expected;
  return sum;
}

TEST_CASE("all orders of a few samples are as frequent, and a sample of many comes anywhere as often") {
  for (const std::uint64_t n : {2U, 3U, 4U, 5U, 6U}) {
    CAPTURE(n);
    std::map<std::vector<std::uint64_t>, long> counts;
    long orders = 1;
    for (std::uint64_t i = 2; i <= n; ++i) orders *= static_cast<long>(i);
    for (std::uint64_t epoch = 0; epoch < 20U * static_cast<std::uint64_t>(orders); ++epoch)
      ++counts[order(n, 7, epoch)];
    std::vector<long> all;
    for (const auto& [what, count] : counts) all.push_back(count);
    CHECK(static_cast<long>(all.size()) == orders);
    const auto freedom = static_cast<double>(orders - 1);
    CHECK(chi_square(all) < freedom + 4 * std::sqrt(2 * freedom) + 4);  // four deviations
  }
  constexpr std::uint64_t many = 37;
  std::vector<std::vector<long>> at(many, std::vector<long>(many));
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto all = order(many, seed, 0);
    for (std::size_t i = 0; i < many; ++i) ++at[i][all[i]];
  }
  double sum = 0;
  for (const auto& counts : at) sum += chi_square(counts);
  const double freedom = 36 * 36;
  CHECK(std::abs(sum - freedom * 37 / 36) < 5 * std::sqrt(2 * freedom) + 40);
}

TEST_CASE("epochs and seeds have orders of their own; unshuffled is in order; any step can be asked for first") {
  CHECK(order(100, 1, 0) == order(100, 1, 0));
  CHECK(order(100, 1, 0) != order(100, 1, 1));
  CHECK(order(100, 1, 0) != order(100, 2, 0));
  CHECK(order(100, 1, 1) != order(100, 2, 0));
  const Sampler sampler(10, 4, {.last = LastBatch::padded, .shuffled = false});
  CHECK(sampler.samples(0) == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(sampler.samples(5) == std::vector<std::int64_t>{8, 9, no_sample, no_sample});
  std::vector<std::vector<std::int64_t>> all;
  const Sampler from_begin(50, 7);
  for (std::int64_t step = 0; step < 30; ++step) all.push_back(from_begin.samples(step));
  for (std::int64_t begin = 0; begin < 30; ++begin) {
    const Sampler again(50, 7);
    for (std::int64_t step = begin; step < 30; ++step)
      CHECK(again.samples(step) == all[static_cast<std::size_t>(step)]);
  }
  const std::int64_t large = std::int64_t{1} << 40;  // takes no memory
  for (const std::int64_t sample : Sampler(large, 100).samples(123'456'789)) CHECK((sample >= 0 && sample < large));
  CHECK_THROWS_WITH(
      Sampler(3, 4),
      "a batch of 4 is asked for, but the data have 3 samples; give more of them, or make the batch smaller");
  CHECK_THROWS_WITH(Sampler(0, 4, {.last = LastBatch::padded}), "the data have 0 samples; give one or more");
  CHECK_THROWS_WITH(Sampler(3, 0), "a batch of 0 rows is asked for; give a number from 1 on");
  CHECK_THROWS_WITH(sampler.samples(-3), "samples of step -3 are asked for; steps are counted from 0");
}

struct Model {
  Parameter<float, Shape<3>> weight;
  constexpr auto operator()(Distributed auto x) const { return mean(square(x + weight)); }
};

TEST_CASE("rows are those that the plan gives a rank, micro-batch by micro-batch") {
  using Step = Training<Model, Sgd, Tensor<float, Shape<8 / data, 3>>>;
  const OwnedPlan four = derive<Step>(Mesh{data = 4});
  CHECK(rows_of(*four, 0, 0) == std::vector<std::int64_t>{0, 1});
  CHECK(rows_of(*four, 0, 3) == std::vector<std::int64_t>{6, 7});
  const OwnedPlan accumulated = derive<Accumulate<3, Step>>(Mesh{data = 4});
  CHECK(rows_of(*accumulated, 0, 1) == std::vector<std::int64_t>{2, 3, 10, 11, 18, 19});
  CHECK_THROWS_AS(rows_of(*four, 1, 0), Failure);
  for (const int rank : {-1, 4, 9})
    CHECK_THROWS_WITH(
        rows_of(*four, 0, rank),
        ("rows of rank " + std::to_string(rank) + " are asked for, but the mesh has 4, counted from 0").c_str());
}

TEST_CASE("windows: each token a target once, none behind the end of a document") {
  const files::Folder folder;
  std::vector<std::uint16_t> tokens(50);
  std::iota(tokens.begin(), tokens.end(), std::uint16_t{100});
  tokens[7] = tokens[20] = 5;
  write_tokens(folder / "tokens", std::span(std::as_const(tokens)));
  const TokenWindows windows(TokenFile(folder / "tokens"), 8, {.end_of_document = 5});
  CHECK(windows.size() == 6);
  std::vector<int> inputs(16), targets(16);
  for (std::int64_t w = 0; w < windows.size(); ++w) {
    windows.copy(w, 1, inputs, targets);
    for (std::size_t i = 0; i < 8; ++i) {
      const auto at = static_cast<std::size_t>(w) * 8 + i;
      CHECK(inputs[8 + i] == tokens[at]);
      CHECK(targets[8 + i] == (tokens[at] == 5 ? TokenWindows::ignored : tokens[at + 1]));
    }
  }
  CHECK(inputs[0] == 0);  // the other row is another's
  windows.copy(no_sample, 1, inputs, targets);
  CHECK(inputs[15] == 0);
  CHECK(targets[8] == TokenWindows::ignored);
  for (const std::int64_t window : {std::int64_t{6}, std::int64_t{-2}})
    CHECK(files::said(folder / "tokens", [&] {
            windows.copy(window, 1, inputs, targets);
          }).sentence.starts_with(": window " + std::to_string(window) + " is asked for, but it has 6; "));
  for (const std::int64_t row : {2, -1})
    CHECK_THROWS_WITH_AS(
        windows.copy(0, row, inputs, targets),
        ("row " + std::to_string(row) + " of windows of 8 tokens is asked for, but the inputs have room for 2").c_str(),
        Failure);
  CHECK(TokenWindows(TokenFile(folder / "tokens"), 49).size() == 1);
  CHECK(files::said(folder / "tokens", [&] { TokenWindows(TokenFile(folder / "tokens"), 50); }).sentence ==
        ": it has 50 tokens, but a context of 50 and its targets take one more than that");
}

TEST_CASE("batches are made ahead, as many as may be; what is thrown comes in its turn; an end waits for no consumer") {
  std::atomic<int> made = 0;
  {
    Prefetch<int> batches(
        [&](std::int64_t step) {
          ++made;
          return static_cast<int>(step);
        },
        5, 3);
    for (int i = 0; i < 20; ++i) {
      CHECK(batches.next() == 5 + i);
      CHECK(made <= i + 1 + 3 + 1);
    }
    for (int i = 0; i < 200 && made < 23; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    CHECK(made == 23);
  }
  Prefetch<std::vector<int>> fails([](std::int64_t step) {
    if (step == 2) throw Failure("the third", 65);
    return std::vector<int>(3, static_cast<int>(step));
  });
  CHECK(fails.next()[0] == 0);
  CHECK(fails.next()[0] == 1);
  CHECK_THROWS_WITH(fails.next(), "the third");
  CHECK_THROWS_WITH(fails.next(), "the third");
}

}  // namespace
