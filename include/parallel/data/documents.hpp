// How much of an attention among packed documents each rank computes.
#pragma once
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <parallel/algebra/order.hpp>
#include <parallel/meta/failure.hpp>

namespace parallel {

/// How many keys the queries of each rank see, all together, where documents of so many tokens lie packed one behind
/// the other and the sequence is split in an order. Throws Failure(bad_data) for a document without tokens, and
/// (configuration) where ranks, or in zigzag twice as many, do not divide the sequence.
inline std::vector<std::int64_t> pairs_of_documents(const std::vector<std::int64_t>& lengths, int ranks,
                                                    Order order = Order::contiguous, bool causal = true) {
  for (const std::int64_t n : lengths)
    if (n < 1)
      throw Failure("a document has " + std::to_string(n) + " tokens; each has at least 1", exit_code::bad_data);
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  const int slices = order == Order::zigzag ? 2 * ranks : ranks;
  if (ranks < 1 || tokens % slices != 0)
    throw Failure("documents of " + std::to_string(tokens) + " tokens are split among " + std::to_string(ranks) +
                      " ranks, into " + std::to_string(slices) + " slices, which do not divide them",
                  exit_code::configuration);
  const internals::Standing stands{order, tokens, ranks};
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(ranks), 0);
  std::int64_t begin = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < length; ++i)
      pairs[static_cast<std::size_t>(stands.place(begin + i) / stands.slice())] += causal ? i + 1 : length;
    begin += length;
  }
  return pairs;
}

}  // namespace parallel
