// A whole tensor on every rank, out of what each of them holds.
#pragma once
#include <concepts>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/run/executor.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

/// The parameter, state or output of this name, as a member; its value is -1 where there is none.
inline Member tensor_called(const Plan& plan, std::string_view name) {
  const GraphView& g = plan.graph;
  for (const Member& m : g.members)
    if (m.role != Role::input && g.path(m) == name) return m;
  Member output;
  output.value = -1;
  for (const Output& o : g.outputs)
    if (g.text(o.name) == name) {
      output.value = o.value;
      output.type = g.value(o.value).type;
    }
  return output;
}

/// All elements of a parameter, a state of the optimizer or an output, by its name, on every rank; layers lie one
/// behind the other. Every rank receives a whole tensor of each, so this is for a look: what is large, `save_weights`
/// and `Checkpoints` write in parts. Called by all ranks together. Throws Misuse where there is no such tensor, its
/// elements are not of type T, or an output is asked for before the first step.
template <class T, Communicator World, class Device, std::convertible_to<std::string_view> Name>
std::vector<T> whole_tensor(World& world, const Executor<World, Device>& executor, const Name& called, Here here = {}) {
  const Plan& plan = executor.plan();
  const std::string_view name = called;
  agree(world, {always(fact("name of the tensor", name))}, "reading a whole tensor", here);
  const Member tensor = tensor_called(plan, name);
  const auto elements = static_cast<std::size_t>(tensor.value < 0 ? 0 : tensor.type.layout.elements());
  std::vector<T> whole(elements);
  executor.get(name, whole);                                // this rank's part, or what is wrong
  std::vector<char> own(elements * sizeof(T) / 4 * 4 + 8);  // and whether this rank is the first that has its part
  std::memcpy(own.data(), whole.data(), elements * sizeof(T));
  own.back() = writes(plan, tensor, world.rank()) ? 1 : 0;
  const std::vector<char> all = agreeing::gathered(world, own, "a whole tensor");
  for (int rank = 0; rank < world.size(); ++rank) {
    const char* const of_rank = all.data() + static_cast<std::size_t>(rank) * own.size();
    if (of_rank[own.size() - 1] == 0) continue;
    each_run(plan, tensor.type.layout, rank, [&](std::int64_t, std::int64_t index, std::int64_t length) {
      std::memcpy(whole.data() + index, of_rank + static_cast<std::size_t>(index) * sizeof(T),
                  static_cast<std::size_t>(length) * sizeof(T));
    });
  }
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
