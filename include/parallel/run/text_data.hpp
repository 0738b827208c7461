// Text as training data: its bytes are the tokens, the vocabulary is 256.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <parallel/communicator/fact.hpp>
#include <parallel/meta/library.hpp>

namespace parallel::internals {

inline constexpr std::size_t most_text = std::size_t{1} << 30;  ///< bytes of a text to train on

/// A whole file, or what comes by a pipe. Throws Failure where it is a directory or a device, cannot be read, or has
/// more than `most` bytes.
PARALLEL_INLINE std::string read_file(const std::string& path, std::size_t most = most_text);

/// The licence texts that every Debian machine carries, one behind the other.
PARALLEL_INLINE std::string licence_texts();

/// Text cut into a part to train on and a part to validate on.
class TextData {
 public:
  /// `context`: tokens of one example. Throws Failure where the text is empty or too short for one example in each
  /// part, and Misuse for a context below 1 or a part to validate on that is none.
  TextData(std::string text, const std::string& name, int context, double validation = 0.1);
  std::size_t size() const { return text_.size(); }
  /// For ranks to compare before they begin.
  Fact fact() const { return fact_of_data("text", std::span<const char>(text_)); }

  /// `examples` windows at random places of the training part: tokens and, one byte later, targets. The same for every
  /// rank.
  void batch(std::uint64_t seed, std::uint64_t step, int examples, std::vector<int>& tokens,
             std::vector<int>& targets) const;
  /// How many windows the validation part has, one behind the other.
  int validation_windows() const {
    return static_cast<int>((text_.size() - train_ - 1) / static_cast<std::size_t>(context_));
  }
  /// One of them. Throws Misuse where it is not there.
  void validation_window(int i, std::vector<int>& tokens, std::vector<int>& targets) const;

  /// The entropy of a byte given the byte before it, in nats: what a table of the text's own bigrams would reach.
  double bigram_entropy() const;

 private:
  void window(std::size_t at, std::vector<int>& tokens, std::vector<int>& targets) const;

  std::string text_;
  std::size_t train_ = 0;
  int context_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::licence_texts;
using internals::read_file;
using internals::TextData;
}  // namespace parallel

#ifndef PARALLEL_LIBRARY
#include <parallel/run/text_data.ipp>
#endif
