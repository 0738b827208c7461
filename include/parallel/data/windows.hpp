// Examples of a language model: pieces of a file of tokens, in which documents lie one behind the other.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include <parallel/data/sampler.hpp>
#include <parallel/file/tokens.hpp>
#include <parallel/meta/nothing.hpp>
#include <parallel/meta/other_names.hpp>

namespace parallel::internals {

/// What has no target.
struct TokenWindowsOptions {
  /// The token that ends a document. What follows one has no target: a document says nothing of the next. None: all
  /// have.
  std::optional<int> end_of_document{};
};

/// Window i is the tokens from i times `context` on; the target of a token is the one behind it.
class TokenWindows {
 public:
  /// What a target is that is none, for `mean_cross_entropy<classes, TokenWindows::ignored>`; PyTorch has the same.
  static constexpr int ignored = -100;

  /// Throws Failure(bad_data) where there is not one window.
  TokenWindows(TokenFile tokens, int context, TokenWindowsOptions how = {})
      : tokens_(std::move(tokens)), context_(static_cast<std::size_t>(context)), how_(how) {
    if (context < 1 || tokens_.size() < context_ + 1)
      throw damaged(tokens_.file(), "it has " + std::to_string(tokens_.size()) + " tokens, but a context of " +
                                        std::to_string(context) + " and its targets take one more than that");
  }
  template <class First, class... More>
  requires(!std::is_same_v<First, TokenWindows> && (!std::is_convertible_v<const First&, TokenFile> ||
                                                    sizeof...(More) == 0)) explicit TokenWindows(const First&,
                                                                                                 const More&...)
      : tokens_(nothing<TokenFile>()) {
    static_assert(
        sizeof...(More) > 99,
        "parallel: TokenWindows are made of a TokenFile and a context; write TokenWindows(TokenFile(\"tokens.bin\"), "
        "1024)");
  }
  template <int is_named = 0>
  TokenWindows(TokenFile tokens, int, const OtherNames&) : tokens_(std::move(tokens)) {
    static_assert(is_named > 0,
                  "parallel: the option of TokenWindows is end_of_document, and a Sampler shuffles them; write "
                  "TokenWindows(tokens, 1024, {.end_of_document = 50256})");
  }
  std::int64_t size() const { return static_cast<std::int64_t>((tokens_.size() - 1) / context_); }

  /// A window, as row `row` of two inputs. That of `no_sample` has zeros, and `ignored` for all targets. Throws Failure
  /// (internal) where there is no such window, or an input has no such row.
  void copy(std::int64_t window, std::int64_t row, std::span<int> tokens, std::span<int> targets) const {
    if (window != no_sample && (window < 0 || window >= size()))
      throw Failure(tokens_.file() + ": window " + std::to_string(window) + " is asked for, but it has " +
                        std::to_string(size()) + "; a Sampler is of as many samples as there are windows",
                    exit_code::internal);
    const auto rows = static_cast<std::int64_t>(std::min(tokens.size(), targets.size()) / context_);
    if (row < 0 || row >= rows)
      throw Failure("row " + std::to_string(row) + " of windows of " + std::to_string(context_) +
                        " tokens is asked for, but the inputs have room for " + std::to_string(rows),
                    exit_code::internal);
    const auto begin = static_cast<std::size_t>(row) * context_;
    tokens = tokens.subspan(begin, context_);
    targets = targets.subspan(begin, context_);
    if (window == no_sample) {
      std::fill(tokens.begin(), tokens.end(), 0);
      std::fill(targets.begin(), targets.end(), ignored);
      return;
    }
    const std::size_t first = static_cast<std::size_t>(window) * context_;
    tokens_.copy(first, tokens);
    tokens_.copy(first + 1, targets);
    for (std::size_t i = 0; i < context_; ++i)
      if (how_.end_of_document == tokens[i]) targets[i] = ignored;
  }

 private:
  TokenFile tokens_;
  std::size_t context_;
  TokenWindowsOptions how_;
};

}  // namespace parallel::internals

namespace parallel {
using internals::TokenWindows;
using internals::TokenWindowsOptions;
}  // namespace parallel
