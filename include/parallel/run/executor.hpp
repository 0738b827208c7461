// Walks a plan on one rank. Everything that can be known before the first step is: kernels, addresses, counts, groups
// of ranks.
#pragma once
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <parallel/communicator/agreement.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/device/device.hpp>
#include <parallel/plan/derive.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/alike.hpp>
#include <parallel/run/groups.hpp>
#include <parallel/run/instruction.hpp>
#include <parallel/run/looking.hpp>
#include <parallel/run/made_of.hpp>
#include <parallel/run/one_at_a_time.hpp>
#include <parallel/run/prepare_event.hpp>
#include <parallel/run/rank_memory.hpp>
#include <parallel/run/recording.hpp>
#include <parallel/run/shared_inputs.hpp>
#include <parallel/run/together.hpp>

namespace parallel::internals {

static_assert(max_started <= max_outstanding);  // what a plan has under way, a communicator can have

/// One rank of a run of a plan: its memory, its instructions, its communicators. `World`: the communicator of all ranks
/// (Threads, Mpi, Nccl); `Device`: what computes (Cpu, CpuDouble, Cuda).
template <class World = void, class Device = void>
class Executor : public RankMemory<Device> {
  using Memory = RankMemory<Device>;
  using Memory::g_, Memory::plan_, Memory::position_, Memory::device_, Memory::host_, Memory::view;

 public:
  using Memory::skipped;
  /// `parameters`: of this rank; programs over one model that cut it alike share them. `before`: an executor whose
  /// memory (`remember`) this one shares. It must outlive this one, which keeps the plan and the parameters. `facts`:
  /// what else ranks must have alike. `looked_into`: whether inputs are compared, and PARALLEL_WATCH, PARALLEL_CHECK
  /// and PARALLEL_RECORD are heard. Called by all ranks together. Throws CannotRun, where parameters or memory lie
  /// differently, too, and Mismatch where ranks have another plan, parameters or arithmetic (agreement.hpp). `world`
  /// must outlive it: a step without it throws Misuse.
  Executor(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Device& device = {},
           const Executor* before = nullptr, std::vector<Fact> facts = {}, Here here = {}, bool looked_into = true);
  template <class... Given>
  requires(!run_of<World, ParametersIn<MemoryOf<Device>>, Given&&...>) explicit Executor(Given&&...)
      : Executor(nothing<const Plan>(), nothing<World>(), nothing<ParametersIn<MemoryOf<Device>>>()) {
    constexpr bool moved = sizeof...(Given) == 1 && (std::is_same_v<std::remove_cvref_t<Given>, Executor> && ...);
    static_assert(!moved,
                  "parallel: an Executor, a Trainer, stays where it is made; hand it on as a reference, "
                  "Trainer<Threads, Cpu>&, hold it by std::unique_ptr, or make it in its place, as emplace_back of a "
                  "std::deque does");
    static_assert(moved || wrong_world<World, Given...>(),
                  "parallel: an Executor is made of a plan, its communicator and parameters that can be written, each "
                  "with a name of its own and no temporary; write const auto plan = derive<Step>(mesh), then "
                  "Executor<Threads, Cpu> executor(plan, world, parameters)");
  }
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the program once: one step, which all ranks begin together. Throws Misuse where an input was never given, and
  /// Mismatch where ranks are at another step, at another place of the program or have other scalars; the first one
  /// Failure(io) where PARALLEL_RECORD names what cannot be written.
  void run(Here here = {});
  /// One step on these inputs, as `input` takes them: `predict(x).output("result")`. Throws what `inputs` and `run` do.
  Executor& operator()(const HandedInput& first, const HandedInput& second = {}, const HandedInput& third = {},
                       const HandedInput& fourth = {}, const HandedInput& fifth = {}, const HandedInput& sixth = {},
                       const HandedInput& seventh = {}, const HandedInput& eighth = {}, Here here = {}) {
    this->inputs({{first, second, third, fourth, fifth, sixth, seventh, eighth}});
    run(here);
    return *this;
  }
  /// Writes this rank's part of a whole tensor that outlives the step, by its name (tensors): a vector, a std::span or
  /// a matrix. Layers lie one behind the other. What every rank holds whole all are to be given alike, which is looked
  /// at when the next step begins. Throws Misuse where there is none of this name, or what is given does not fit.
  template <class A>
  void set(HandedName name, A&& whole, Here here = {}) {
    put(name, numbers_of(whole), here);
  }
  /// The same where the whole lies nowhere: `write(part)` is given this rank's part, a std::byte*, where it has one.
  template <class Write>
  void change(HandedName name, Write write, Here here = {}) {
    const Member& m = this->find(name);
    alike_.set(m, this->change_part(m, write), steps_, here);
  }
  /// All ranks that run the plan.
  World& world() const { return world_; }
  /// The same on all ranks, and of this executor alone.
  std::int64_t number() const { return alike_.number(); }
  /// How many steps were begun.
  std::int64_t steps() const { return steps_; }
  /// From now on a step is one graph of the device. Not where the communicator's host waits within a step, and nothing
  /// is recorded any more. Where the step is looked into (PARALLEL_WATCH, PARALLEL_CHECK) or recorded from outside
  /// (PARALLEL_RECORD) it goes on as before.
  template <class Capturing = Device>  // so that a device that captures nothing has an executor, too
  void capture() {
    if (looking_ || (inputs_ && records_from_outside())) return;
    recording_ = nullptr;
    one_by_one_ = false;
    graph_ = static_cast<const Capturing&>(device_).capture([this] { once(); });
  }
  /// Notes from now on what happens; the recording outlives the runs.
  void record(Recording& recording) {
    recording_ = recording.active() ? &recording : nullptr;
    one_by_one_ = recording_ != nullptr || looking_;
  }

  /// Every communicator that the plan uses, by its axes ("data", "data+tensor").
  template <class F>
  void each_group(F f) {
    groups_->each(f);
  }

 private:
  using Instruction = parallel::internals::Instruction<World>;

  /// Begins with the first step, where PARALLEL_RECORD says so and the program does not; ends when all that is recorded
  /// has been, so that it can be read while the run goes on.
  void record_from_outside() {
    if (!from_outside_) {
      if (recording_ == nullptr && records_from_outside())
        record(from_outside_.emplace(file_from_outside(this->rank()), plan_, this->rank()));
    } else if (from_outside_->complete()) {
      from_outside_->write();
      if (recording_ == &*from_outside_) {
        recording_ = nullptr;
        one_by_one_ = looking_.has_value();
      }
      from_outside_.reset();
    }
  }
  void put(std::string_view name, const HandedOver& whole, const Here& here) {
    const Member& m = this->find(name);
    check_whole(whole, m.type, "the tensor ", name);
    const std::uint64_t hash =
        this->change_part(m, [&](std::byte* part) { write_part(plan_, m.type.layout, this->rank(), whole, part); });
    alike_.set(m, hash, steps_, here);
  }
  void once() {
    walk([](const Instruction&, const Record&, auto happen) { happen(); });
  }
  /// Every event in order; `as(instruction, call, happen)` lets it happen.
  template <class As>
  void walk(As as) {
    if (uses_host_) host_.begin_step();
    if constexpr (requires { device_.keeps_packed(); }) device_.begin_step();
    walk(0, begins_[0], as);
    for (const Slot& s : g_.slots) {
      position_.work_on(s);
      walk(begins_[s.part], begins_[s.part + 1], as);
    }
    if (!g_.slots.empty()) position_.work_on({});
    walk(begins_.back(), static_cast<int>(instructions_.size()), as);
    if (uses_host_) host_.end_step();
  }
  /// The events from one place up to another.
  template <class As>
  void walk(int at, int end, As& as) {
    for (; at < end; ++at) {
      Instruction& i = instructions_[static_cast<std::size_t>(at)];
      switch (i.kind) {
        case EventKind::compute:
          if (!Device::asynchronous && i.updates && skipped()) break;
          if (!one_by_one_ && !i.at_once.calls.empty()) {
            i.at_once.kernel.compute(i.at_once.calls);
            at += static_cast<int>(i.at_once.calls.size()) - 1;
          } else
            compute(i, as);
          groups_->progress();
          break;
        case EventKind::start:
          if (i.in_last >= 0 && !position_.is_last(i.in_last)) break;
          if (i.ahead < 0)
            start(i, as);
          else
            position_.ahead(i.ahead,
                            [&] { start(i.jump < 0 ? i : instructions_[static_cast<std::size_t>(i.jump)], as); });
          break;
        case EventKind::wait:
          if (Instruction& started = instructions_[static_cast<std::size_t>(i.jump)];
              !i.crossing || under_way_[static_cast<std::size_t>(i.node)])
            as(i, record(started), [&] { wait(started); });
          break;
        case EventKind::begin:
          position_.iterate(i.region, 0);
          fill_carries(i);
          if (i.jump >= end) break;  // slots go through it
          for (int k = 0; k < g_.region(i.region).count; ++k) {
            position_.iterate(i.region, k);
            walk(at + 1, i.jump, as);
          }
          position_.leave(i.region);
          at = i.jump;
          break;
        case EventKind::end: break;
      }
    }
  }

  /// A value where the host can read it, now that all before is done.
  View readable(int value, const View& v) {
    if (!on_host(g_.value(value).type.layout)) return this->on_host(v, room_);
    device_.finish();
    return v;
  }
  /// A step of which something is looked at: what is computed, launch by launch, and what exchanges bring.
  void once_looked_into(double scale) {
    const auto read = [this](int value) { return readable(value, view(value)); };
    const auto reads = [this](int value, const View& v) { return readable(value, v); };
    looking_->begin(steps_, scale, read);
    walk([&](const Instruction& i, const Record& call, auto happen) {
      const auto all = [&] {
        if (i.kind == EventKind::compute)
          return looking_->compute(i, position_, read, reads, [&](const Launch& l) { launch(i, l); });
        const Instruction& e = i.kind == EventKind::wait ? instructions_[static_cast<std::size_t>(i.jump)] : i;
        looking_->exchange(i.kind == EventKind::start, i.kind == EventKind::wait, e, position_, read, reads, happen);
      };
      if (recording_ == nullptr) return all();
      recording_->note(i.kind, i.node, call, [&] {
        all();
        device_.finish();
      });
    });
    looking_->end(steps_, read, [this](const std::string& own, const char* label) {
      return world_.size() == 1 ? std::vector{own} : agreeing::gathered(world_, own, label);
    });
  }
  void launch(const Instruction& i, const Launch& one) {
    if (i.on_host)
      host_.compute({&one, 1});
    else
      internals::compute(device_, one);
  }

  void address(Instruction& i) {
    for (const Following& f : i.following) f.view->data = position_.address(*f.storage) + f.chunk * position_.chunk();
  }
  template <class As>
  void compute(Instruction& i, As as) {
    address(i);
    for (Call& call : i.calls) {
      call.layer = position_.index(i.layers) * i.blocks + position_.layers_before(i.staged);
      call.micro_batch = position_.index(i.micro_batches);
    }
    as(i, {}, [&] {
      if (i.on_host) return host_.compute(i.launches);
      for (const Launch& launch : i.launches) internals::compute(device_, launch);
    });
  }
  /// What is handed to a communicator, or copied by the rank alone.
  static Record record(const Instruction& i) { return record_of(i.exchange, i.group != nullptr ? i.group->size() : 1); }
  template <class As>
  void start(Instruction& i, As as) {
    address(i);
    const View& in = i.calls[0].operands[0];
    const View& out = i.calls[0].results[0];
    const void* from = in.data;
    for (Call& pad : i.pad) {
      pad.operands[0].data = in.data;
      Device::copy_overlap(pad);
      from = pad.results[0].data;
    }
    if (i.packed != nullptr)
      device_.pack(from, i.packed, i.before.outer, i.before.n, i.before.inner, bytes_of(in.dtype));
    i.exchange.in = i.packed != nullptr ? i.packed : from;
    i.exchange.out = i.received != nullptr ? i.received : i.unpad.empty() ? out.data : i.unpad[0].operands[0].data;
    under_way_[static_cast<std::size_t>(i.node)] = true;
    as(i, record(i), [&] {
      if (i.group != nullptr)
        tickets_[static_cast<std::size_t>(i.node)] = i.group->start(i.exchange);
      else
        host_.start(i.node, out.data, in.data, in.elements() * bytes_of(in.dtype),
                    i.exchange.kind == Collective::offload);
    });
  }
  void wait(Instruction& i) {
    under_way_[static_cast<std::size_t>(i.node)] = false;
    if (i.group == nullptr) return host_.wait(i.node);
    i.group->wait(tickets_[static_cast<std::size_t>(i.node)]);
    const View& out = i.calls[0].results[0];
    void* const to = i.unpad.empty() ? out.data : i.unpad[0].operands[0].data;
    if (i.received != nullptr)
      device_.unpack(i.received, to, i.after.outer, i.after.n, i.after.inner, bytes_of(out.dtype));
    for (Call& unpad : i.unpad) {
      unpad.results[0].data = out.data;
      Device::copy_overlap(unpad);
    }
  }

  /// Before the first iteration carried values take what they begin with.
  void fill_carries(const Instruction& i) {
    for (const auto& [from, to] : i.initial) {
      Call call{.operands = {view(from)}, .results = {view(to)}};
      if (on_host(g_.value(to).type.layout)) {
        using On = std::remove_cvref_t<decltype(host_.device())>;
        host_.device().prepare(call);
        call.kernel = On::copy;
        const Launch launch{{&call, 1}};
        host_.compute({&launch, 1});
      } else {
        device_.prepare(call);
        Device::copy(call);
      }
    }
  }

  World& world_;
  std::weak_ptr<std::atomic<bool>> world_lives_{};
  std::shared_ptr<ParameterBlock<MemoryOf<Device>>> parameters_;
  Here made_at_;
  const bool trains_ =
      std::any_of(g_.nodes.begin(), g_.nodes.end(), [](const Node& n) { return n.phase != Phase::forward; });
  const bool uses_host_ = host_axis(g_) != nullptr;
  std::int64_t steps_ = 0;  // that were begun
  Alike<World, Device> alike_{plan_, world_, parameters_->provenance, this->scalars(), trains_, made_at_};
  std::optional<Groups<World>> groups_{};
  // goes before the groups: a communicator of NCCL does not end while a graph holds its exchanges
  typename GraphOf<Device>::type graph_{};
  Vector<int> begins_ = begins_of_parts(plan_);
  std::vector<Instruction> instructions_{};
  std::vector<Ticket> tickets_{};  // per node, and whether it has been started and not waited for
  std::vector<bool> under_way_{};
  Recording* recording_ = nullptr;
  std::optional<Recording> from_outside_{};
  std::optional<SharedInputs> inputs_{};
  bool compares_every_step_ = false;
  std::atomic<bool> running_{false};
  bool one_by_one_ = false;  // calls that a device computes at once are not: each is recorded, or looked at
  std::optional<Looking> looking_{};
  std::vector<std::byte> room_{};  // for what is looked at
};
/// Without what it is of: refused.
template <class Plan, class World, class... More>
Executor(const Plan&, const World&, const More&...) -> Executor<Plan, World>;
template <class World, class On>
requires(!Runs<World, On>) class Executor<World, On> : public Misnamed<Executor<World, On>> {
  using Misnamed<Executor<World, On>>::Misnamed;
};

// Behind the class, so that a unit for which the library has compiled them does not compile them again.

template <class World, class Device>
Executor<World, Device>::Executor(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters,
                                  const Device& device, const Executor* before, std::vector<Fact> facts, Here here,
                                  bool looked_into)
    : Memory(plan, world.rank(), world.size(), parameters, device, before),
      world_(world),
      parameters_(parameters.block()),
      made_at_(here) {
  if constexpr (requires { world.lifetime(); }) world_lives_ = world.lifetime();
  tickets_.resize(g_.nodes.size());
  under_way_.resize(g_.nodes.size());
  if constexpr (requires { attach(world, device_); }) attach(world, device_);
  compares_every_step_ = !looked_for().check.empty();
  if (looked_into) inputs_.emplace(plan_);
  if (looked_into && looks_into_steps()) {
    const std::string line = agreeing::text(here);
    looking_.emplace(plan_, world.rank(), world.size(), !trains_ && parameters_->provenance.of_training(),
                     (trains_ ? "the training" : "the evaluation") + (line.empty() ? "" : " made at " + line));
    one_by_one_ = true;
  }
  alike_.begin(std::move(facts), before == nullptr ? nullptr : &before->alike_);
  groups_.emplace(plan_, world);
  instructions_.reserve(plan.events.size());  // views are pointed to from here on
  const PrepareEvent<World, Device> prepare(plan_, position_, *groups_, device_, host_, looking_, this->rank());
  for (const Event& e : plan.events) prepare(instructions_.emplace_back(), e);
  bring_together(instructions_, device_);
}

template <class World, class Device>
Executor<World, Device>::~Executor() {
  try {
    if (from_outside_) from_outside_->write();
  } catch (...) {  // no memory for it: a run that ends, ends
  }
}

template <class World, class Device>
void Executor<World, Device>::run(Here here) {
  const OneAtATime alone(running_, "a step of an executor or a trainer");
  std::optional<OneAtATime> alone_on_world;
  if constexpr (requires { world_.lifetime(); }) {
    const auto lives = world_lives_.lock();
    if (lives == nullptr)
      throw Misuse(
          "a step is asked of an executor whose communicator is there no more; make executors and trainers "
          "within run_threads(...) or run_mpi(...), behind the communicator, and use them there");
    alone_on_world.emplace(*lives, "a step of an executor or a trainer on one communicator");
  }
  // asked before the step, behind which a scale moves by how the step went
  const double scale = looking_ && this->reads("loss_scale") ? this->loss_scale().scale : 1;
  if (inputs_ && (steps_ == 0 || from_outside_)) record_from_outside();
  this->begin_step();
  if (recording_ != nullptr) recording_->begin_step();
  ++steps_;
  alike_.step(steps_, recording_, here);
  if (inputs_ && (compares_every_step_ || Agreement::compares_inputs(steps_))) inputs_->compare(world_, *this, steps_);
  if (trains_) parameters_->provenance.train(alike_.number(), made_at_);
  if (graph_) return graph_.launch();
  if (!one_by_one_) return once();
  if (looking_) return once_looked_into(scale);
  walk([this](const Instruction& i, const Record& call, auto happen) {
    recording_->note(i.kind, i.node, call, [&] {
      happen();
      device_.finish();
    });
  });
}

}  // namespace parallel::internals

namespace parallel {
using internals::Executor;
}  // namespace parallel
