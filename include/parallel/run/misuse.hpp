// A call that a plan has no answer to.
#pragma once
#include <charconv>
#include <concepts>
#include <string>

#include <parallel/run/failure.hpp>

namespace parallel::internals {

/// What a program asks of a plan, or hands to it, is not there or does not fit: an input of another size, an output or
/// a number that it has not.
struct Misuse : Failure {
  explicit Misuse(const std::string& sentence, int code = exit_code::internal) : Failure(sentence, code) {}
};

/// A number for a sentence, in the fewest digits that say it.
template <std::floating_point T>
std::string shortest(T number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

}  // namespace parallel::internals

namespace parallel {
using internals::Misuse;
}  // namespace parallel
