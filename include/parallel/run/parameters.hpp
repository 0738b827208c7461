// The parameters of a model on one rank, begun alike on every mesh: a rank's part is the slice of what one rank alone
// would have.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <parallel/device/cpu/team.hpp>
#include <parallel/device/draw.hpp>
#include <parallel/device/host.hpp>
#include <parallel/device/host_memory.hpp>
#include <parallel/plan/taking_part.hpp>
#include <parallel/run/block_layout.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/handed_name.hpp>
#include <parallel/run/kept_plan.hpp>
#include <parallel/run/numbers.hpp>
#include <parallel/run/provenance.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

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

/// Whether they are made of these.
template <class Parameters, class... Given>
constexpr bool parameters_of = (std::is_same_v<Given, Parameters> && ...);
template <class Parameters, class P, class Rank, class Seed, class... More>
constexpr bool parameters_of<Parameters, P, Rank, Seed, More...> = std::is_convertible_v<const P&, const Plan&>&&
    std::is_convertible_v<Rank, int>&& std::is_convertible_v<Seed, std::uint64_t>;

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
  template <class... Given>
  requires(!parameters_of<ParametersIn, Given...>) explicit ParametersIn(const Given&...) {
    static_assert(sizeof...(Given) > 99,
                  "parallel: Parameters are made of a plan, a rank and a seed; write Parameters parameters(plan, "
                  "world.rank(), 1)");
  }
  ParametersIn(ParametersIn&&) noexcept = default;
  ParametersIn& operator=(ParametersIn&&) noexcept = default;
  /// There is one set of a rank's numbers: refused.
  template <std::same_as<ParametersIn> Same>
  ParametersIn(Same&) {
    static_assert(sizeof(Same*) == 0,
                  "parallel: Parameters are not copied; a second set is Parameters other(plan, world.rank(), 1), an "
                  "average of the weights Averaged<AdamW>, and what is to be kept a checkpoint");
  }
  template <std::same_as<ParametersIn> Same>
  ParametersIn& operator=(Same& other) {
    return *this = ParametersIn(other);
  }
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

  /// Writes this rank's part of a whole tensor, given by its member's path: a vector, a std::span or a matrix. Layers
  /// lie one behind the other. Throws Misuse where there is no such parameter, or what is given does not
  /// fit.
  template <class A>
  void set(const Plan& plan, int rank, HandedName path, A&& whole, Here here = {}) {
    const HandedOver given = numbers_of(whole);
    const Member& m = find(plan, rank, path);
    check_whole(given, m.type, "the parameter ", path);
    std::uint64_t hash = hash_of_part(plan, m, nullptr);
    if (has_part(plan, m.value, rank))
      change<std::byte>(plan, m, [&](std::byte* part) { hash = set_part(plan, m, rank, given, part); });
    block_->provenance.set(path, hash, here);
  }
  /// Without the plan and the rank: refused.
  template <class... Given>
  void set(std::string_view, const Given&...) {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: a parameter is set by the plan, the rank, its path and numbers; write parameters.set(plan, "
        "world.rank(), \"mlp.up\", numbers), on every rank");
  }
  /// Writes this rank's part into a whole tensor, which has room for all of it; all ranks together fill it.
  template <class A>
  void get(const Plan& plan, int rank, HandedName path, A&& whole) const {
    const HandedOver given = to_be_written(numbers_of(whole));
    const Member& m = find(plan, rank, path);
    check_whole(given, m.type, "the parameter ", path);
    if (!has_part(plan, m.value, rank)) return;
    const auto read = [&](const std::byte* part) { read_part(plan, m.type.layout, rank, part, given); };
    in_memory_of(m, [&](auto& memory) { memory.look(offset_of(plan, m), local_bytes(m.type, plan.mesh), read); });
  }
  /// Without the plan and the rank, or as a range: refused.
  template <class... Given>
  const std::vector<float>& get(std::string_view, const Given&...) const {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: a parameter is read by the plan, the rank, its path and room for the whole of it; write "
        "parameters.get(plan, world.rank(), \"mlp.up\", numbers), on every rank, with a vector of as many elements");
    static const std::vector<float> none;
    return none;
  }
  template <class None = void>
  float* begin() const {
    static_assert(sizeof(None*) == 0,
                  "parallel: Parameters are no range; for (const auto& name : parameters.names(plan)) goes over the "
                  "names, by which parameters.get(plan, world.rank(), name, numbers) reads one and set writes it");
    return nullptr;
  }
  template <class None = void>
  float* end() const {
    return nullptr;
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
  static void check_made(const Plan& plan, int rank) {
    static_cast<void>(check_there(plan));
    if (rank < 0 || rank >= plan.mesh.ranks())
      throw CannotRun("parameters are made for rank " + std::to_string(rank) + ", but " + text(plan.mesh) + " has " +
                      std::to_string(plan.mesh.ranks()) + ", counted from 0; give the communicator's, world.rank()");
  }
  void check(const Plan& plan, int rank) const {
    static_cast<void>(check_there(plan));
    if (block_ == nullptr) throw Misuse("the parameters were moved away; use those that they were moved to");
    if (rank != rank_)
      throw CannotRun("the parameters of rank " + std::to_string(rank_) + " are given to rank " + std::to_string(rank) +
                      "; make them with the rank of the communicator, Parameters(plan, world.rank(), seed)");
    check_alike(layout_, block_layout(plan, Role::parameter),
                "parameters of one program are given to another that cuts the model differently",
                "name the same mesh and schedule (Pipelined) in both, store parameters alike (Stored, AllStored) and "
                "cut neither by cost (Balanced), or make parameters from this program's plan");
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
  /// How many threads draw a rank's numbers: its share of the machine's, where they are worth it.
  static int threads_for(const Plan& plan) {
    constexpr std::int64_t least = 1 << 20;
    if (plan.memory.of(MemoryBlock::parameter) + plan.memory.of(MemoryBlock::host_parameter) < least) return 1;
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / plan.mesh.ranks());
  }
  template <class T>
  static void fill(cpu::Team& team, T* data, const Member& m, const Plan& plan, int rank, std::uint64_t seed,
                   std::uint64_t stream) {
    const Initializer how = m.initializer;
    const Layout& layout = m.type.layout;
    double fans = 1;  // fan in + fan out, the layers' dimension apart
    const int first = m.layers > 0 ? 1 : 0;
    if (layout.rank() > first) {
      double out = 1;
      for (int d = first + 1; d < layout.rank(); ++d) out *= static_cast<double>(layout.dims[d].size);
      fans = static_cast<double>(layout.dims[first].size) + out;
    }
    Draw what{.seed = seed, .stream = stream, .scale = how.scale};
    if (how.kind == Initializer::Kind::xavier) {
      what.normal = false;
      what.scale *= std::sqrt(6 / fans);
    }
    const std::int64_t elements = local_elements(layout, plan.mesh), share = (elements + team.size() - 1) / team.size();
    team.each([&](int thread) {
      each_run(plan, layout, rank, [&](std::int64_t position, std::int64_t index, std::int64_t length) {
        const std::int64_t begin = std::max(position, thread * share),
                           n = std::min(position + length, (thread + 1) * share) - begin;
        if (n <= 0) return;
        if (how.kind == Initializer::Kind::constant)
          std::fill_n(data + begin, n, static_cast<T>(how.scale));
        else
          draw(what, static_cast<std::uint64_t>(index + begin - position), n, data + begin);
      });
    });
  }

  std::shared_ptr<ParameterBlock<Memory>> block_;
  int rank_ = 0;
  BlockLayout layout_{};
};
template <class Memory>
ParametersIn<Memory>::ParametersIn(const Plan& plan, int rank, std::uint64_t seed, Memory&& memory, Beside&& host)
    : block_((check_made(plan, rank),
              std::make_shared<ParameterBlock<Memory>>(std::move(memory), std::move(host), Provenance(plan, seed)))),
      rank_(rank),
      layout_(block_layout(plan, Role::parameter)) {
  std::optional<cpu::Team> threads;
  try {
    threads.emplace(threads_for(plan));
  } catch (const Failure&) {  // the system has no more of them: it takes longer
    threads.emplace(1);
  }
  cpu::Team& team = *threads;
  for (std::size_t i = 0; i < plan.graph.members.size(); ++i) {
    const Member& m = plan.graph.members[i];
    if (m.role != Role::parameter || !has_part(plan, m.value, rank)) continue;
    if (m.type.dtype == DType::i32)
      throw CannotRun("the parameter " + std::string(plan.graph.path(m)) + " is " + text(m.type) +
                      "; parameters of f32 and f64 can be run, others only planned");
    if (m.type.dtype == DType::f64)
      change<double>(plan, m, [&](double* data) { fill(team, data, m, plan, rank, seed, i); });
    else
      change<float>(plan, m, [&](float* data) { fill(team, data, m, plan, rank, seed, i); });
  }
}

using Parameters = ParametersIn<HostMemory>;

}  // namespace parallel::internals

namespace parallel {
using internals::Parameters;
using internals::ParametersIn;
}  // namespace parallel
