// A whole tensor on every rank, out of what each of them holds.
#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/handed_name.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

/// All elements of a parameter, a state of the optimizer or an output, by its name, on every rank; layers lie one
/// behind the other. Of what several ranks hold whole, the first one's: whether their copies are equal,
/// compare_replicas says. Every rank takes part in a sum of as many, so this is for a look: what is large,
/// `save_weights` and `Checkpoints` write in parts. Called by all ranks together, of the same executor. Throws Misuse
/// where `world` is not what the executor was made of, there is no such tensor, its elements are not of type T, or it
/// is an output that is a pending sum, or asked for before the first step, and Mismatch where ranks ask for different
/// ones.
template <class T, Communicator World, class Device, std::convertible_to<std::string_view> Name>
std::vector<T> whole_tensor(World& world, const Executor<World, Device>& executor, const Name& called, Here here = {}) {
  static_assert(
      is_element_type<T>,
      "parallel: whole_tensor is told the tensor's elements, f32 as float; write whole_tensor<float>, <double>, "
      "<bfloat16>, <float16> or <int>");
  const HandedName name = called;
  if (&world != &executor.world())
    throw Misuse(
        "a whole tensor was asked for of another communicator than the executor's, whose ranks hold the parts; "
        "give the world that the executor was made of, executor.world()");
  const Plan& plan = executor.plan();
  constexpr const char* doing = "reading a whole tensor";
  const std::vector<Fact> facts{always(fact("name of the tensor", std::string_view(name))),
                                always(fact("executor", executor.number()))};
  if (world.size() > 1 && !agreeing::alike(world, agreeing::hash_of(doing, facts), doing))
    agreeing::tell(world, doing, here, facts, "let all ranks ask for the same tensor of the same executor");
  Member tensor;
  tensor.value = executor.called(name);
  tensor.type = plan.graph.value(tensor.value).type;
  for (int i = 0; i < plan.mesh.count; ++i)
    if (plan.mesh.axes[i].size > 1 && tensor.type.layout.on(plan.mesh.axes[i].axis) == Partial)
      throw Misuse("the tensor " + std::string(name) + " is " + text(tensor.type) +
                   ", a pending sum, of which each rank has a term; complete it by to<On<axis, Invariant>>(x)");
  std::vector<T> whole(static_cast<std::size_t>(tensor.type.layout.elements()));
  executor.get(name, whole);  // this rank's part
  if (!writes(plan, tensor, world.rank())) std::fill(whole.begin(), whole.end(), T{});
  const std::size_t bytes = whole.size() * sizeof(T);
  std::vector<std::int32_t> words((bytes + 3) / 4);  // each is written by one rank: their sum has its bits
  std::memcpy(words.data(), whole.data(), bytes);
  world.aside({Collective::all_reduce, words.data(), words.data(), static_cast<std::int64_t>(words.size()), DType::i32,
               false, 0, "a whole tensor", -1, here});
  std::memcpy(static_cast<void*>(whole.data()), words.data(), bytes);
  return whole;
}
template <class T = void, class... Given>
std::vector<float> whole_tensor(const Given&...) {
  static_assert(
      sizeof...(Given) > 99,
      "parallel: whole_tensor takes the communicator, an executor and a name, and is told the elements' type; "
      "write whole_tensor<float>(world, step.executor(), \"mlp.up\"), on every rank");
  return {};
}

}  // namespace parallel::internals

namespace parallel {
using internals::whole_tensor;
}  // namespace parallel
