// Whole tensors into a rank's part and out of it, against memcpy of the part's bytes; first values of 124 million
// parameters, as many as GPT-2 has.
//
//   taskset -c 0,1 whole [--rounds N]
//
// First values are drawn by as many threads as the process has cores: so, by two.
#include <cstring>
#include <thread>

#include <parallel/parallel.hpp>
#include <parallel/run/parameters.hpp>

#include "measure.hpp"

namespace bench {

using namespace parallel;
using namespace parallel::axes;

/// A whole tensor has 64 MiB, of which a rank of two has half: in one piece, in rows of 8 KiB, in pieces of 128 B.
struct Split {
  Parameter<float, Shape<4096 / tensor, 4096>> rows{zeros};
  Parameter<float, Shape<4096, 4096 / tensor>> columns{zeros};
  Parameter<float, Shape<4096, 64, 64 / tensor>> pieces{zeros};
  constexpr auto operator()(Distributed auto x) const { return sum(x) + sum(rows) + sum(columns) + sum(pieces); }
};
struct Large {
  Parameter<float, Shape<124'000, 1'000>> w{normal(0.02)};
  constexpr auto operator()(Distributed auto x) const { return sum(x) + sum(w); }
};
template <class Model>
using Evaluating = Evaluation<Model, Tensor<float, Shape<2>>>;

/// Of the second rank, as the first would be a plain copy of the beginning.
void measure_parts(int rounds) {
  const OwnedPlan plan = derive<Evaluating<Split>>(Mesh{tensor = 2});
  Parameters parameters(plan, 1, 1);
  std::vector<float> whole(4096 * 4096, 1.0F), part(whole.size() / 2);
  const double bytes = static_cast<double>(part.size() * sizeof(float)) * 1e-9;
  for (const char* name : {"rows", "columns", "pieces"}) {
    std::vector<double> in, out, copy;
    for (int round = -1; round < rounds; ++round) {
      const double set = seconds([&] { parameters.set(plan, 1, name, whole); });
      const double plain = seconds([&] { std::memcpy(part.data(), whole.data(), part.size() * sizeof(float)); });
      const double get = seconds([&] { parameters.get(plan, 1, name, whole); });
      if (part[part.size() / 2] != 1 || whole.back() != 1) throw Failure("whole: a number is another than was set");
      if (round < 0) continue;
      in.push_back(set);
      out.push_back(get);
      copy.push_back(plain);
    }
    const std::string of = std::string("32 of 64 MiB, ") + name + " split: ";
    row("whole", of + "in", per(bytes, in), "GB/s of the part");
    row("whole", of + "out", per(bytes, out), "GB/s of the part");
    row("whole", of + "memcpy of as many bytes", per(bytes, copy), "GB/s of the part");
    row("whole", of + "in, over memcpy", ratio(in, copy), "ratio of times");
    row("whole", of + "out, over memcpy", ratio(out, copy), "ratio of times");
  }
}
void measure_first_values(int rounds) {
  const OwnedPlan plan = derive<Evaluating<Large>>(Mesh{});
  std::vector<double> times;
  for (int round = -1; round < rounds; ++round) {
    const double time = seconds([&] { const Parameters parameters(plan, 0, 1); });
    if (round >= 0) times.push_back(time);
  }
  const std::string on = " on " + std::to_string(std::thread::hardware_concurrency()) + " threads";
  row("whole", "first values of 124 million parameters" + on, spread(times), "s");
  row("whole", "first values" + on, scaled(1e9 / 124e6, times), "ns per parameter");
}

}  // namespace bench

int main(int argc, char** argv) {
  int rounds = 9;
  if (argc == 3 && std::strcmp(argv[1], "--rounds") == 0) {
    rounds = std::atoi(argv[2]);
  } else if (argc != 1) {
    std::fprintf(stderr, "whole: unknown argument '%s'; say whole [--rounds N]\n", argv[1]);
    return 2;
  }
  bench::measure_parts(rounds);
  bench::measure_first_values(rounds);
}
