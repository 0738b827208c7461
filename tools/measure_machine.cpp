// Measures this machine and prints its description in JSON, which prices and simulations of plans take. Run by
// tools/machine.
//
//   measure_machine [--output FILE] [--ranks N] [--rounds N] [--name NAME]
//
// Exit codes: 0 done; 1 a measurement failed; 2 usage; 74 the file cannot be written.
#include <filesystem>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "bench/machine.hpp"
#include "planner/machine_file.hpp"

namespace {

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "this machine";
}

/// Seconds that all cores were busy, but by this process; 0 where the system does not say.
double busy_with_others() {
  std::ifstream file("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0;
  if (!(file >> cpu >> user >> nice >> system)) return 0;
  timespec own{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return (user + nice + system) / static_cast<double>(::sysconf(_SC_CLK_TCK)) -
         (static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  const int cores = std::max(1, parallel::internals::cpu::Team::cores());
  std::string output, name = processor();
  int ranks = std::min(cores, 4), rounds = 15;
  CLI::App app(
      "Measures this machine with the library's own kernels and threads, in about half a minute, and prints its "
      "description in JSON.");
  app.add_option("--output", output, "Write there instead of to the standard output");
  app.add_option("--ranks", ranks, "Measure 1, 2, 4, ... ranks at once up to so many")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", rounds, "How often each figure is measured; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  const auto is_short = [](const std::string& words) {
    return words.size() < 64 ? "" : "it has more than 63 characters";
  };
  app.add_option("--name", name, "What to call it")->check(CLI::Validator(is_short, ""))->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (ranks > cores)
    std::fprintf(stderr, "tools/machine: %d ranks share %d core%s; the figures are of that\n", ranks, cores,
                 cores == 1 ? "" : "s");
  const auto cannot_write = [&] {
    return std::fprintf(stderr, "tools/machine: cannot write %s\n", output.c_str()), 74;
  };
  if (const bool is_new = !std::filesystem::exists(output); !output.empty()) {
    if (!std::ofstream(output, std::ios::app)) return cannot_write();
    if (is_new) std::filesystem::remove(output);
  }
  try {
    const auto begin = bench::Clock::now();
    const double busy = busy_with_others();
    parallel::Machine machine = bench::measure_machine(ranks, rounds);
    const double took = std::chrono::duration<double>(bench::Clock::now() - begin).count(),
                 others = (busy_with_others() - busy) / took;
    if (others > 0.1)
      std::fprintf(stderr,
                   "tools/machine: other programs kept %.1f cores busy meanwhile, which latencies and bandwidths feel; "
                   "measure again when the machine is quiet\n",
                   others);
    machine.name = parallel::internals::Text<64>(name);
    const std::string text = planner::machine_to_json(machine).dump(2) + "\n";
    if (output.empty())
      std::fputs(text.c_str(), stdout);
    else if (std::ofstream file(output); !(file << text << std::flush))
      return cannot_write();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tools/machine: %s\n", error.what());
    return 1;
  }
}
