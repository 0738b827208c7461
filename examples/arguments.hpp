// What the examples take from their command line: numbers, all of them and within bounds, and one sentence for what is
// none.
#pragma once
#include <charconv>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include <parallel/run/failure.hpp>

/// Takes a number from `lowest` to `highest` and nothing behind it. (CLI11 alone makes a large number of -1, and takes
/// nan.)
template <class T>
CLI::Validator number(T lowest, T highest) {
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

/// Reads the command line. False where help was asked for, and printed. Throws Failure(usage).
inline bool parse(CLI::App& app, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return false;
  } catch (const CLI::ParseError& error) {
    throw parallel::Failure(std::string(error.what()) + "; --help says what there is", parallel::exit_code::usage);
  }
}
