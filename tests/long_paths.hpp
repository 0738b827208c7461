// A model whose parameters' paths have 64, 65, 200 and 1,011 characters; the first two share 64 of theirs.
#pragma once
#include <string>
#include <vector>

#include <parallel/parallel.hpp>

namespace long_paths {

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

using Weights = Parameter<float, Shape<16 / tensor>>;

template <int depth>
struct Nest {
  Nest<depth - 1> block_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i;
  constexpr auto operator()(Distributed auto x) const {
    return block_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i(x);
  }
};
template <>
struct Nest<0> {
  Weights gain{ones};
  constexpr auto operator()(Distributed auto x) const { return x * gain; }
};
struct Pair {
  Weights gain{ones}, gains{ones};
  constexpr auto operator()(Distributed auto x) const { return square(x * gain) * gains; }
};
struct Hundred {
  Weights weight_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i{ones};
  constexpr auto operator()(Distributed auto x) const {
    return x * weight_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i;
  }
};
struct Model {
  Pair members_that_is_as_long_as_some_generated_code_has_them_bec;
  Hundred block_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i;
  Layers<2, Nest<10>> deep;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = members_that_is_as_long_as_some_generated_code_has_them_bec(x);
    const auto z =
        block_that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i(y);
    return mean(deep(z));
  }
};
using Batch = Tensor<float, Shape<8 / data, 16 / tensor>>;

inline constexpr Operation reads{.name = "reads"};

/// Two numbers of a run that share more than 15 characters.
struct Optimizer {
  struct Hyperparameters {
    double learning_rate_of_gains = 1, learning_rate_of_gains_that_are_long = 2, clip_norm = 0;
  };
  static constexpr void update(Update& u) {
    u.output("read",
             u.apply(reads, {u.gradient()}, {"learning_rate_of_gains", "learning_rate_of_gains_that_are_long"})[0]);
    u.state("mean");
  }
};
using Step = Training<Model, AdamW, Batch>;
using OwnStep = Training<Model, Optimizer, Batch>;

/// What the parameters are called, in the order of the model.
inline std::vector<std::string> paths() {
  const std::string pair = "members_that_is_as_long_as_some_generated_code_has_them_bec";
  const std::string tail =
      "that_is_as_long_as_some_generated_code_has_them_because_a_path_may_have_any_length_and_none_i";
  const std::string block = "block_" + tail, weight = "weight_" + tail;
  std::string deep = "deep.*";
  for (int i = 0; i < 10; ++i) deep += "." + block;
  return {pair + ".gain", pair + ".gains", block + "." + weight, deep + ".gain"};
}

}  // namespace long_paths
