// Text as training data, compiled ahead.
#pragma once
#include <cmath>
#include <filesystem>
#include <fstream>

#include <parallel/device/random.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/misuse.hpp>
#include <parallel/run/text_data.hpp>

namespace parallel::internals {

PARALLEL_INLINE std::string read_file(const std::string& path, std::size_t most) {
  const auto refused = [&](const std::string& why, int code) { return Failure(path + why, code); };
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw refused(" is a directory; name a text file", exit_code::missing_input);
  if (std::filesystem::is_character_file(path, error) || std::filesystem::is_block_file(path, error))
    throw refused(" is a device; name a text file", exit_code::missing_input);
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("cannot read " + path + "; check the path and its permissions", exit_code::missing_input);
  std::string text;
  std::vector<char> part(1 << 16);
  while (file && text.size() <= most) {
    file.read(part.data(), static_cast<std::streamsize>(part.size()));
    text.append(part.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (text.size() > most)
    throw refused(" has more than " + std::to_string(most) + " bytes; name a smaller text", exit_code::bad_data);
  if (file.bad()) throw refused(" cannot be read to its end; check the disk", exit_code::missing_input);
  return text;
}

PARALLEL_INLINE std::string licence_texts() {
  std::string all;
  for (const char* name : {"Apache-2.0", "Artistic", "BSD", "CC0-1.0", "GFDL-1.3", "GPL-1", "GPL-2", "GPL-3", "LGPL-2",
                           "LGPL-2.1", "LGPL-3", "MPL-1.1", "MPL-2.0"}) {
    const std::string path = std::string("/usr/share/common-licenses/") + name;
    std::error_code error;
    if (std::filesystem::exists(path, error)) all += read_file(path);
  }
  if (all.empty())
    throw Failure("/usr/share/common-licenses holds no text; name one with --text FILE", exit_code::missing_input);
  return all;
}

PARALLEL_INLINE TextData::TextData(std::string text, const std::string& name, int context, double validation)
    : text_(std::move(text)), context_(context) {
  if (text_.empty()) throw Failure(name + " is empty; name a text file that is not", exit_code::bad_data);
  if (context < 1)
    throw Misuse("an example of text has a context of " + std::to_string(context) + "; give one token or more");
  if (!(validation > 0 && validation < 1))
    throw Misuse("the part of a text to validate on is " + shortest(validation) +
                 "; give a number above 0 and below 1, as 0.1");
  train_ = static_cast<std::size_t>(static_cast<double>(text_.size()) * (1 - validation));
  const std::size_t needed = static_cast<std::size_t>(static_cast<double>(context + 2) / validation) + 1;
  if (text_.size() - train_ < static_cast<std::size_t>(context) + 2 || train_ < static_cast<std::size_t>(context) + 2)
    throw Failure(name + " has " + std::to_string(text_.size()) + " bytes, too short for a context of " +
                      std::to_string(context) + "; at least " + std::to_string(needed) + " are needed",
                  exit_code::bad_data);
}

PARALLEL_INLINE void TextData::batch(std::uint64_t seed, std::uint64_t step, int examples, std::vector<int>& tokens,
                                     std::vector<int>& targets) const {
  if (examples < 0)
    throw Misuse("a batch of " + std::to_string(examples) + " examples is asked for; give a number from 0 on");
  tokens.clear();
  targets.clear();
  const std::size_t places = train_ - static_cast<std::size_t>(context_) - 1;
  for (int e = 0; e < examples; ++e) {
    const double fraction = random_uniform(seed, step, static_cast<std::uint64_t>(e));
    window(static_cast<std::size_t>(fraction * static_cast<double>(places)), tokens, targets);
  }
}

PARALLEL_INLINE void TextData::validation_window(int i, std::vector<int>& tokens, std::vector<int>& targets) const {
  if (i < 0 || i >= validation_windows())
    throw Misuse("window " + std::to_string(i) + " is asked for, but the validation part has " +
                 std::to_string(validation_windows()) + ", counted from 0");
  window(train_ + static_cast<std::size_t>(i) * static_cast<std::size_t>(context_), tokens, targets);
}

PARALLEL_INLINE double TextData::bigram_entropy() const {
  std::vector<double> pairs(65536), firsts(256);
  for (std::size_t i = 0; i + 1 < text_.size(); ++i) {
    const auto a = static_cast<unsigned char>(text_[i]), b = static_cast<unsigned char>(text_[i + 1]);
    ++pairs[a * 256U + b];
    ++firsts[a];
  }
  double entropy = 0;
  for (std::size_t p = 0; p < 65536; ++p)
    if (pairs[p] > 0) entropy -= pairs[p] * std::log(pairs[p] / firsts[p / 256]);
  return entropy / static_cast<double>(text_.size() - 1);
}

PARALLEL_INLINE void TextData::window(std::size_t at, std::vector<int>& tokens, std::vector<int>& targets) const {
  for (std::size_t i = 0; i < static_cast<std::size_t>(context_); ++i) {
    tokens.push_back(static_cast<unsigned char>(text_[at + i]));
    targets.push_back(static_cast<unsigned char>(text_[at + i + 1]));
  }
}

}  // namespace parallel::internals
