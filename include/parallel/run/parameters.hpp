// The parameters of a model on one rank, begun alike on every mesh: a rank's part is the slice of what one rank alone
// would have.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <parallel/device/host.hpp>
#include <parallel/device/host_memory.hpp>
#include <parallel/device/random.hpp>
#include <parallel/plan/plan.hpp>
#include <parallel/run/block_layout.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/numbers.hpp>
#include <parallel/run/provenance.hpp>

namespace parallel::internals {

/// Where in the full dimension element i of a rank's part lies. The chunks of a stage's layers are not neighbours.
inline std::int64_t whole_index(const Plan& plan, const Dim& dim, int rank, std::int64_t i) {
  const int stages =
      plan.graph.stages != nullptr && dim.split_by(plan.graph.stages) ? plan.mesh.extent(plan.graph.stages) : 1;
  if (stages == 1 || plan.graph.schedule->chunks == 1) return offset(dim, plan.mesh, rank) + i;
  const std::int64_t layers = local(dim, plan.mesh) / plan.graph.schedule->chunks;
  return (i / layers * stages + plan.mesh.coordinate(rank, plan.graph.stages)) * layers + i % layers;
}

/// A walk over a rank's part of a tensor whose dimensions are split one by one.
template <class F>
void each_element_of_box(const Plan& plan, const Layout& layout, int rank, F f) {
  const Mesh& mesh = plan.mesh;
  std::int64_t at[max_rank]{};
  const int dims = layout.rank();
  const std::int64_t elements = local_elements(layout, mesh);
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t global = 0;
    for (int d = 0; d < dims; ++d)
      global = global * layout.dims[d].size + whole_index(plan, layout.dims[d], rank, at[d]);
    f(i, global);
    for (int d = dims - 1; d >= 0 && ++at[d] == local(layout.dims[d], mesh); --d) at[d] = 0;
  }
}
/// A walk over a rank's part of a tensor: f(position in the part, index in the full tensor, both counted in elements).
/// Of a flat view it is a share of what the other axes leave; what pads it is no element.
template <class F>
void each_element(const Plan& plan, const Layout& layout, int rank, F f) {
  const LocalPart part = local_part(layout, plan.mesh, rank);
  if (part.flat_from < 0) return each_element_of_box(plan, layout, rank, f);
  Layout unshared = layout;
  for (const Placed& p : layout.others)
    if (p.placement.flat) unshared = unshared.with(p.axis, Invariant);
  const std::int64_t share = part.size[part.flat_from] * part.each, flat = part.flat * part.each;
  each_element_of_box(plan, unshared, rank, [&](std::int64_t i, std::int64_t global) {
    const std::int64_t in_share = i % flat - part.before * part.each;
    if (in_share >= 0 && in_share < part.own * part.each) f(i / flat * share + in_share, global);
  });
}

/// Their memory, and where the numbers in it come from, which ranks compare.
template <class Memory>
struct ParameterBlock {
  using Beside = typename BesideOf<Memory>::type;
  ParameterBlock(Memory&& m, Beside&& h, Provenance&& p)
      : memory(std::move(m)), host(std::move(h)), provenance(std::move(p)) {}

  Memory memory;
  Beside host;
  Provenance provenance;
};

/// The block of a program's parameters on one rank. Programs over one model share it where they have the same mesh and
/// cut layers alike; what takes a plan throws CannotRun where that plan's parameters lie differently. `Memory`: a
/// device's.
template <class Memory>
class ParametersIn {
 public:
  /// Memory for the parameters of a plan on this rank, and their first values from `seed`.
  template <class Device>
  ParametersIn(const Plan& plan, int rank, std::uint64_t seed, const Device& device)
      : ParametersIn(plan, rank, seed, device.memory(plan.memory.of(MemoryBlock::parameter)),
                     HostOf<Device>::type::memory(device, plan.memory.of(MemoryBlock::host_parameter))) {}
  ParametersIn(const Plan& plan, int rank, std::uint64_t seed)
      : ParametersIn(plan, rank, seed, Memory(plan.memory.of(MemoryBlock::parameter)),
                     Beside(plan.memory.of(MemoryBlock::host_parameter))) {}
  ParametersIn(ParametersIn&&) noexcept = default;
  ParametersIn& operator=(ParametersIn&&) noexcept = default;
  /// What an executor keeps of them: it lives as long as the executor, also where these are replaced by others.
  const std::shared_ptr<ParameterBlock<Memory>>& block() const { return block_; }
  /// The block, as a plan finds it on a rank, and that in the host's memory.
  std::byte* data(const Plan& plan, int rank) const {
    check(plan, rank);
    return block_->memory.data();
  }
  std::byte* data_on_host(const Plan& plan, int rank) const {
    check(plan, rank);
    return block_->host.data();
  }

  /// Writes this rank's part of a whole tensor, given by its member's path: a vector, a std::span or a row-major
  /// matrix. Layers lie one behind the other. Throws Misuse where there is no such parameter, or what is given does not
  /// fit.
  template <class A>
  void set(const Plan& plan, int rank, std::string_view path, A&& whole, Here here = {}) {
    const auto given = numbers_of(whole);
    using T = std::remove_const_t<typename decltype(given.all())::element_type>;
    const Member& m = find(plan, rank, path);
    check_whole(given, m.type, "the parameter ", path);
    held_by_all(plan, m) ? block_->provenance.set(path, std::as_bytes(given.all()), here)
                         : block_->provenance.set_part(path);
    if (!held(plan, m)) return;
    const auto all = given.all();
    const auto write = [&](T* part) {
      each_element(plan, m.type.layout, rank,
                   [&](std::int64_t i, std::int64_t global) { part[i] = all[static_cast<std::size_t>(global)]; });
    };
    change<T>(plan, m, write);
  }
  /// Writes this rank's part into a whole tensor, which has room for all of it; all ranks together fill it.
  template <class A>
  void get(const Plan& plan, int rank, std::string_view path, A&& whole) const {
    const auto given = numbers_of(whole);
    using T = typename decltype(given.all())::element_type;
    static_assert(!std::is_const_v<T>,
                  "parallel: a parameter is written into what is given, which is const; give what can be written");
    const Member& m = find(plan, rank, path);
    check_whole(given, m.type, "the parameter ", path);
    if (!held(plan, m)) return;
    const auto read = [&](const std::byte* bytes) {
      const auto all = given.all();
      const T* part = reinterpret_cast<const T*>(bytes);
      each_element(plan, m.type.layout, rank,
                   [&](std::int64_t i, std::int64_t global) { all[static_cast<std::size_t>(global)] = part[i]; });
    };
    in_memory_of(m, [&](auto& memory) { memory.look(offset_of(plan, m), local_bytes(m.type, plan.mesh), read); });
  }
  /// What `set` and `get` call the parameters of a plan, in the order of the model.
  static std::vector<std::string> names(const Plan& plan) {
    std::vector<std::string> all;
    for (const Member& m : plan.graph.members)
      if (m.role == Role::parameter) all.emplace_back(plan.graph.path(m));
    return all;
  }

 private:
  using Beside = typename ParameterBlock<Memory>::Beside;
  ParametersIn(const Plan& plan, int rank, std::uint64_t seed, Memory&& memory, Beside&& host);
  template <class F>
  void in_memory_of(const Member& m, F f) const {
    on_host(m.type.layout) ? f(block_->host) : f(block_->memory);
  }
  static std::int64_t offset_of(const Plan& plan, const Member& m) {
    return plan.storage[static_cast<std::size_t>(m.value)].offset;
  }
  template <class T, class F>
  void change(const Plan& plan, const Member& m, F f) {
    const auto write = [&](std::byte* bytes) { f(reinterpret_cast<T*>(bytes)); };
    in_memory_of(m, [&](auto& memory) { memory.change(offset_of(plan, m), local_bytes(m.type, plan.mesh), write); });
  }
  void check(const Plan& plan, int rank) const {
    if (block_ == nullptr) throw Misuse("the parameters were moved away; use those that they were moved to");
    if (rank != rank_)
      throw CannotRun("the parameters of rank " + std::to_string(rank_) + " are given to rank " + std::to_string(rank) +
                      "; make them with the rank of the communicator, Parameters(plan, world.rank(), seed)");
    check_alike(
        layout_, block_layout(plan, Role::parameter),
        "parameters of one program are given to another that cuts the model differently",
        "name the same mesh and schedule (Pipelined) in both, store parameters alike (Stored, AllStored) and cut neither by cost (Balanced), or make parameters from this program's plan");
  }
  /// Whether every rank has the whole of a member; in a pipeline, where others have nothing of it, none is taken for
  /// one.
  static bool held_by_all(const Plan& plan, const Member& m) {
    const auto at_some = [&](const Placed& p) {
      return p.placement.kind == PlacementKind::at && plan.mesh.extent(p.axis) > 1;
    };
    const Layout& layout = m.type.layout;
    return (plan.graph.stages == nullptr || plan.mesh.extent(plan.graph.stages) == 1) &&
           local_elements(layout, plan.mesh) == layout.elements() &&
           std::none_of(layout.others.begin(), layout.others.end(), at_some);
  }
  /// Whether this rank's stage has anything of a member.
  static bool held(const Plan& plan, const Member& m) {
    return plan.storage[static_cast<std::size_t>(m.value)].block != MemoryBlock::none;
  }
  const Member& find(const Plan& plan, int rank, std::string_view path) const {
    check(plan, rank);
    std::string known;
    for (const Member& m : plan.graph.members) {
      if (m.role != Role::parameter) continue;
      if (plan.graph.path(m) == path) return m;
      known += (known.empty() ? "; it has " : ", ") + std::string(plan.graph.path(m));
    }
    throw Misuse("the model has no parameter " + std::string(path) + known);
  }
  template <class T>
  static void fill(T* data, const Member& m, const Plan& plan, int rank, std::uint64_t seed, std::uint64_t stream) {
    const Initializer how = m.initializer;
    const Layout& layout = m.type.layout;
    double fans = 1;  // fan in + fan out, the layers' dimension apart
    const int first = m.layers > 0 ? 1 : 0;
    if (layout.rank() > first) {
      double out = 1;
      for (int d = first + 1; d < layout.rank(); ++d) out *= static_cast<double>(layout.dims[d].size);
      fans = static_cast<double>(layout.dims[first].size) + out;
    }
    const double limit = how.scale * std::sqrt(6 / fans);
    each_element(plan, layout, rank, [&](std::int64_t i, std::int64_t global) {
      const auto index = static_cast<std::uint64_t>(global);
      switch (how.kind) {
        case Initializer::Kind::constant: data[i] = static_cast<T>(how.scale); break;
        case Initializer::Kind::normal: data[i] = static_cast<T>(how.scale * random_normal(seed, stream, index)); break;
        case Initializer::Kind::xavier:
          data[i] = static_cast<T>(limit * (2 * random_uniform(seed, stream, index) - 1));
          break;
      }
    });
  }

  std::shared_ptr<ParameterBlock<Memory>> block_;
  int rank_ = 0;
  BlockLayout layout_{};
};
template <class Memory>
ParametersIn<Memory>::ParametersIn(const Plan& plan, int rank, std::uint64_t seed, Memory&& memory, Beside&& host)
    : block_(std::make_shared<ParameterBlock<Memory>>(std::move(memory), std::move(host), Provenance(plan, seed))),
      rank_(rank),
      layout_(block_layout(plan, Role::parameter)) {
  for (std::size_t i = 0; i < plan.graph.members.size(); ++i) {
    const Member& m = plan.graph.members[i];
    if (m.role != Role::parameter || !held(plan, m)) continue;
    if (m.type.dtype == DType::i32)
      throw CannotRun("the parameter " + std::string(plan.graph.path(m)) + " is " + text(m.type) +
                      "; parameters of f32 and f64 can be run, others only planned");
    if (m.type.dtype == DType::f64)
      change<double>(plan, m, [&](double* data) { fill(data, m, plan, rank, seed, i); });
    else
      change<float>(plan, m, [&](float* data) { fill(data, m, plan, rank, seed, i); });
  }
}

using Parameters = ParametersIn<HostMemory>;

}  // namespace parallel::internals

namespace parallel {
using internals::Parameters;
using internals::ParametersIn;
}  // namespace parallel
