// The examples' command line, by CLI11.
#include "command_line.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <CLI/CLI.hpp>

#include <parallel/run/failure.hpp>
#include <parallel/run/finite.hpp>
#include <parallel/run/watching.hpp>

namespace {
/// Takes a number from `lowest` to `highest` and nothing behind it. (CLI11 alone makes a large number of -1, and takes
/// nan.)
template <class T>
CLI::Validator within(T lowest, T highest) {
  const auto check = [lowest, highest](const std::string& argument) {
    T value{};
    const char* const end = argument.data() + argument.size();
    const auto [at, error] = std::from_chars(argument.data(), end, value);
    if (error == std::errc() && at == end && value >= lowest && value <= highest) return std::string();
    return "'" + argument + "' is no number from " + CLI::detail::to_string(lowest) + " to " +
           CLI::detail::to_string(highest);
  };
  return CLI::Validator(check, "NUMBER");
}
/// How many processes a launcher of MPI has started; 1: none has.
int launched() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* const size = std::getenv(name)) return std::atoi(size);
  return 1;
}
}  // namespace

struct CommandLine::Own {
  CLI::App app;
  std::string watch{}, check{};
  const bool* by_mpi = nullptr;  ///< whether ranks are processes, where that can be said
};

CommandLine::CommandLine(const char* what) : own_(new Own{CLI::App(what)}) {
  text("--watch", own_->watch,
       "tensors, lines or operations to show in every step, as PARALLEL_WATCH; docs/looking.md");
  text("--check", own_->check,
       "finite: ends at the first number that is not; inputs: at those that ranks are given otherwise");
}
CommandLine::~CommandLine() = default;

void CommandLine::text(const char* name, std::string& to, const char* what) {
  CLI::Option* option = own_->app.add_option(name, to, what);
  if (!to.empty()) option->capture_default_str();
}
void CommandLine::number(const char* name, int& to, const char* what, int lowest, int highest) {
  own_->app.add_option(name, to, what)->capture_default_str()->check(within(lowest, highest));
}
void CommandLine::number(const char* name, double& to, const char* what, double lowest, double highest) {
  own_->app.add_option(name, to, what)->capture_default_str()->check(within(lowest, highest));
}
void CommandLine::number(const char* name, std::uint64_t& to, const char* what, std::uint64_t highest) {
  own_->app.add_option(name, to, what)->capture_default_str()->check(within(std::uint64_t{0}, highest));
}
void CommandLine::flag(const char* name, bool& to, const char* what) {
  own_->app.add_flag(name, to, what);
  if (name == std::string_view("--mpi")) own_->by_mpi = &to;
}

bool CommandLine::read(int argc, char** argv) {
  try {
    own_->app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", own_->app.help().c_str());
    return false;
  } catch (const CLI::ParseError& error) {
    throw parallel::Failure(std::string(error.what()) + "; --help says what there is", parallel::exit_code::usage);
  }
  if (const int processes = launched(); processes > 1 && own_->by_mpi != nullptr && !*own_->by_mpi)
    throw parallel::Failure(
        "mpirun has started " + std::to_string(processes) +
            " processes, each of which would run all ranks as its threads; say --mpi, by which ranks "
            "are the processes, or leave mpirun out",
        parallel::exit_code::usage);
  if (!own_->watch.empty()) parallel::watch(own_->watch);
  if (!own_->check.empty()) parallel::check_numbers(own_->check);
  return true;
}
