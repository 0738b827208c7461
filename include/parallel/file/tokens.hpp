// Files of tokens: raw, as nanoGPT's, or with the header of llm.c (https://github.com/karpathy/llm.c).
#pragma once
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include <parallel/file/mapped_file.hpp>
#include <parallel/file/new_file.hpp>

namespace parallel::internals {

/// Bytes of a token. llm.c's magic and version for each.
enum class TokenWidth { two = 2, four = 4 };
struct LlmcTokens {
  static constexpr std::size_t header = 256;  ///< numbers of 4 bytes; behind magic and version the number of tokens
  std::int32_t magic, version;
};
constexpr LlmcTokens llmc_tokens(TokenWidth width) {
  return width == TokenWidth::two ? LlmcTokens{20240520, 1} : LlmcTokens{20240801, 7};
}

/// Tokens one behind the other, mapped. Copies share the file.
class TokenFile {
 public:
  /// A file with llm.c's header. Throws Failure: missing_input where there is none; bad_data where the header is
  /// another, or the file has not the tokens that it says.
  explicit TokenFile(const std::string& file) : in_(std::make_shared<const MappedFile>(file)) {
    begin_ = 4 * LlmcTokens::header;
    const std::size_t bytes = in_->bytes().size();
    if (bytes < begin_)
      throw damaged(file, "it has " + std::to_string(bytes) +
                              " bytes, fewer than llm.c's header of 1024; of raw tokens "
                              "say how wide they are: TokenFile(file, TokenWidth::two)");
    const auto magic = in_->number<std::int32_t>(0), version = in_->number<std::int32_t>(4),
               count = in_->number<std::int32_t>(8);
    bool known = false;
    for (const TokenWidth width : {TokenWidth::two, TokenWidth::four})
      if (magic == llmc_tokens(width).magic && version == llmc_tokens(width).version) {
        width_ = width;
        size_ = (bytes - begin_) / static_cast<std::size_t>(width);
        known = true;
      }
    if (!known)
      throw damaged(file,
                    "it begins with " + std::to_string(magic) + " and version " + std::to_string(version) +
                        ", but files of tokens with 20240520 and 1, or 20240801 and 7; of raw tokens say how wide "
                        "they are: TokenFile(file, TokenWidth::two)");
    if (count < 0 || begin_ + static_cast<std::size_t>(count) * static_cast<std::size_t>(width_) != bytes)
      throw damaged(file, "its header says that it has " + std::to_string(count) + " tokens, but behind that are " +
                              std::to_string(bytes - begin_) + " bytes, of " +
                              std::to_string(static_cast<int>(width_)) + " a token");
  }
  /// A file of tokens and nothing else. Throws Failure as the other, also where the last token is cut off, and where it
  /// begins as llm.c's header does.
  TokenFile(const std::string& file, TokenWidth width) : in_(std::make_shared<const MappedFile>(file)), width_(width) {
    const std::size_t bytes = in_->bytes().size();
    for (const TokenWidth of : {TokenWidth::two, TokenWidth::four})
      if (bytes >= 4 * LlmcTokens::header && in_->number<std::int32_t>(0) == llmc_tokens(of).magic &&
          in_->number<std::int32_t>(4) == llmc_tokens(of).version)
        throw damaged(file, "it begins with llm.c's header, " + std::to_string(llmc_tokens(of).magic) +
                                " and version " + std::to_string(llmc_tokens(of).version) +
                                ", which would be read as tokens; leave the width out, as the header says it: "
                                "TokenFile(file)");
    size_ = bytes / static_cast<std::size_t>(width);
    if (bytes % static_cast<std::size_t>(width) != 0)
      throw damaged(file, "it has " + std::to_string(bytes) + " bytes, which are no tokens of " +
                              std::to_string(static_cast<int>(width)));
  }

  const std::string& file() const { return in_->file(); }
  std::size_t size() const { return size_; }
  /// The tokens from `first` on. Throws Failure: internal where there are not so many. A program's tokens are ints, and
  /// a token that is none is bad_data.
  void copy(std::size_t first, std::span<int> to) const {
    if (first > size_ || to.size() > size_ - first)
      throw Failure(file() + ": " + std::to_string(to.size()) + " tokens from " + std::to_string(first) +
                        " on are asked for, but it has " + std::to_string(size_),
                    exit_code::internal);
    width_ == TokenWidth::two ? copy_of<std::uint16_t>(first, to) : copy_of<std::uint32_t>(first, to);
  }
  int operator[](std::size_t i) const {
    int token = 0;
    copy(i, {&token, 1});
    return token;
  }

 private:
  template <class Token>
  void copy_of(std::size_t first, std::span<int> to) const {
    for (std::size_t i = 0; i < to.size(); ++i) {
      const auto token = in_->number<Token>(begin_ + (first + i) * sizeof(Token));
      if (token > static_cast<std::uint32_t>(std::numeric_limits<int>::max()))
        throw damaged(
            file(), "its token " + std::to_string(first + i) + " is " + std::to_string(token) + ", larger than an int");
      to[i] = static_cast<int>(token);
    }
  }

  std::shared_ptr<const MappedFile> in_;
  TokenWidth width_ = TokenWidth::two;
  std::size_t begin_ = 0, size_ = 0;
};

/// Writes FILE with llm.c's header, whole or not at all. Throws Failure: io where it cannot be written, bad_data where
/// they are 2^31 tokens or more, which the header cannot say.
template <class Tokens>
void write_tokens(const std::string& file, const Tokens& of) {
  const std::span tokens(of);
  using Token = std::remove_const_t<typename decltype(tokens)::element_type>;
  static_assert(
      std::is_same_v<Token, std::uint16_t> || std::is_same_v<Token, std::uint32_t>,
      "parallel: a file has tokens of 2 bytes, or of 4; write write_tokens(file, "
      "std::vector<std::uint16_t>(ids.begin(), ids.end())), with std::uint32_t where there are more than 65536");
  if (tokens.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw damaged(file, "a file of tokens has fewer than 2147483648; write several");
  constexpr LlmcTokens kind = llmc_tokens(static_cast<TokenWidth>(sizeof(Token)));
  std::array<std::int32_t, LlmcTokens::header> header{kind.magic, kind.version,
                                                      static_cast<std::int32_t>(tokens.size())};
  NewFile out(file, file);
  out.write(header.data(), sizeof header);
  out.write(tokens.data(), tokens.size_bytes());
  out.put_in_place();
}

}  // namespace parallel::internals

namespace parallel {
using internals::TokenFile;
using internals::TokenWidth;
using internals::write_tokens;
}  // namespace parallel
