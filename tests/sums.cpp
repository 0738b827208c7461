// SumsIn: in which element types gradients travel and are kept, by plans' bytes, and by values that round where the
// words say and nowhere else, on every mesh and at every stage of ZeRO.
#include "sums.hpp"

#include <doctest/doctest.h>

#include <parallel/question/moment.hpp>

using namespace sums;

namespace {

// What is sent and kept: half of it.
constexpr int w = 64, b = 8;
template <class T>
struct Perceptron {
  Parameter<T, Shape<w, 2 * w / tensor>> up;
  Parameter<T, Shape<2 * w / tensor, w>> down;
  constexpr auto operator()(Distributed auto x) const {
    return mean(square(cast<float>(matmul(gelu(matmul(cast<T>(x), up)), down))));
  }
};
template <class T>
using Of = Training<Perceptron<T>, AdamW, Tensor<float, Shape<b / data, w>>>;
constexpr std::int64_t elements = 2 * 2 * w * w;
template <class Program>
constexpr auto& on_data = plan<Program, Mesh{data = 2}>;
template <class Program>
constexpr std::int64_t reduced_bytes = on_data<Program>.backward.messages(data);
template <class Program>
constexpr std::int64_t gradient_bytes = fullest(on_data<Program>).of(Use::gradients);

using InFull = Of<float>;
using InHalf = SumsIn<InFull, Reduced<bfloat16>>;
static_assert(reduced_bytes<InFull> == 4 * elements && reduced_bytes<InHalf> == 2 * elements);
static_assert(reduced_bytes<SumsIn<LossScaled<InFull>, Reduced<float16>>> == 2 * elements);
static_assert(reduced_bytes<SumsIn<Of<bfloat16>, Reduced<bfloat16>>> == 2 * elements);
static_assert(reduced_bytes<SumsIn<Of<bfloat16>, Reduced<float>>> == 4 * elements);
static_assert(reduced_bytes<Of<double>> == 8 * elements);
static_assert(reduced_bytes<SumsIn<Of<double>, Reduced<bfloat16>>> == 8 * elements);  // double stays

template <class Program, Zero stage>
using At = AllStored<Program, Stored<data, stage>>;
static_assert(reduced_bytes<At<InHalf, Zero::states>> == 2 * elements);
static_assert(reduced_bytes<At<Accumulate<4, InHalf>, Zero::states>> == 2 * elements);
static_assert(reduced_bytes<At<Accumulate<4, InHalf>, Zero::gradients>> == 4 * 2 * elements);
static_assert(reduced_bytes<At<Accumulate<4, InFull>, Zero::gradients>> == 4 * 4 * elements);

// The gradients that add up over micro-batches.
using Sum = Accumulate<4, InFull>;
static_assert(gradient_bytes<Sum> == 4 * elements);
static_assert(gradient_bytes<SumsIn<Sum, Accumulated<bfloat16>, Reduced<bfloat16>>> == 2 * elements);
static_assert(gradient_bytes<SumsIn<Accumulate<4, Of<bfloat16>>, Accumulated<bfloat16>, Reduced<bfloat16>>> ==
              2 * elements);

// Hidden states of tensor parallelism, forward; x needs no gradient.
constexpr auto summed = [](const Plan& p) { return p.forward.messages(all_reduce(tensor)); };
template <class Program>
constexpr std::int64_t on_tensor = summed(plan<Program, Mesh{data = 2, tensor = 2}>);
static_assert(on_tensor<Of<bfloat16>> == b / 2 * w * 4);
static_assert(on_tensor<SumsIn<Of<bfloat16>, Activations<bfloat16>>> == b / 2 * w * 2);
static_assert(on_tensor<SumsIn<Of<float>, Activations<bfloat16>>> == b / 2 * w * 4);  // what is no half stays
// no word says more than it says
static_assert(plan<SumsIn<Of<bfloat16>, Activations<bfloat16>>, Mesh{data = 2}>.backward.messages(data) ==
              4 * elements);
static_assert(on_tensor<SumsIn<Of<bfloat16>, Reduced<bfloat16>, Accumulated<bfloat16>>> == b / 2 * w * 4);

}  // namespace

TEST_CASE("gradients are rounded where the words say, on every mesh and at every stage") {
  each_program([](const Words& words, const Graph& graph) {
    for (const Mesh& mesh : meshes) {
      INFO(name_of(words.parameters) << ", accumulated in " << name_of(words.accumulated) << ", reduced in "
                                     << name_of(words.reduced) << ", stage " << words.stage << " of ZeRO, on "
                                     << text(mesh));
      const OwnedPlan plan = derive(graph, mesh, {}, {});
      const std::vector<lockstep::Array> found = program::outputs(*plan, feed);
      const std::vector<double> first = expected(words, mesh.extent(&data));
      std::vector<double> each_layer;
      for (int l = 0; l < layers; ++l) each_layer.insert(each_layer.end(), first.begin(), first.end());
      REQUIRE(found.size() == 4);  // behind the loss and the norm
      CHECK(found[2].data == first);
      CHECK(found[3].data == each_layer);
    }
  });
}
