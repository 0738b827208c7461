// Twelve heads on eight ranks, which divide all else; twelve ranks would divide the heads only.
// figures: axis<tensor>, extent<12>, slices<8>, valid_below<4>, valid_above<0>
#include <parallel/model/gpt2.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::axes;

constexpr models::Gpt2Sizes sizes{.context = 16,
                                  .channels = 48,
                                  .heads = 12 / tensor,
                                  .inner = 64 / tensor,
                                  .vocabulary = 64 / tensor,
                                  .classes = 61,
                                  .layers = 2};
using Tokens = Tensor<int, Shape<4, 16>>;
using Step = Training<models::Gpt2<sizes>, Sgd, Tokens, Tokens>;
#ifdef WRONG
constexpr auto& p = plan<Step, Mesh{tensor = 8}>;
#else
constexpr auto& p = plan<Step, Mesh{tensor = 4}>;
#endif
