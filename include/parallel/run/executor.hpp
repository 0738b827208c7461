// Walks a plan on one rank. Everything that can be known before the first step is: kernels, addresses, counts, groups of ranks.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include <parallel/communicator/communicator.hpp>
#include <parallel/device/kernel.hpp>
#include <parallel/plan/derive.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/groups.hpp>
#include <parallel/run/instruction.hpp>
#include <parallel/run/local_move.hpp>
#include <parallel/run/memory.hpp>
#include <parallel/run/position.hpp>
#include <parallel/run/recording.hpp>
#include <parallel/run/remembered.hpp>

namespace parallel {

template <Communicator World, class Device>
class Executor {
 public:
  /// `parameters`: the block of the program's parameters on this rank, `plan.memory.blocks[parameter]` bytes; programs over one model and mesh
  /// share it. `before`: an executor whose memory (`remember`) this one shares. Both and the plan must outlive it. Called by all ranks together.
  Executor(const Plan& plan, World& world, std::byte* parameters, const Device& device = {}, const Executor* before = nullptr)
      : plan_(plan), g_(plan.graph), rank_(world.rank()), position_(plan, world.rank()), arena_(plan.memory.arena), device_(device) {
    if (world.size() != plan.mesh.ranks())
      throw CannotRun("the mesh " + text(plan.mesh) + " has " + std::to_string(plan.mesh.ranks()) + " ranks, but " + std::to_string(world.size()) +
                      " were started; start as many ranks as the mesh has");
    if (g_.stages != nullptr && plan.mesh.here != plan.mesh.coordinate(rank_, g_.stages))
      throw CannotRun("rank " + std::to_string(rank_) + " of " + text(plan.mesh) + " is on stage " + std::to_string(plan.mesh.coordinate(rank_, g_.stages)) +
                      ", but was given the plan of stage " + std::to_string(plan.mesh.here) + "; derive<Program>(mesh, rank) makes each rank's own");
    if (const ScheduleRefusal refusal = check_schedule(g_, plan.mesh)) throw CannotRun(text(refusal));
    for (int b = 0; b < 6; ++b)
      if (static_cast<Segment>(b) != Segment::parameter && (before == nullptr || static_cast<Segment>(b) != Segment::state)) own_[b] = HostMemory(plan.memory.blocks[b]);
    for (int b = 0; b < 6; ++b) block(static_cast<Segment>(b)) = own_[b].data();
    if (before != nullptr) check_remembered(plan, before->plan()), block(Segment::state) = before->position_.blocks[static_cast<int>(Segment::state)];
    block(Segment::parameter) = parameters;
    block(Segment::arena) = arena_.data();
    tickets_.resize(g_.nodes.size()), under_way_.resize(g_.nodes.size());
    groups_.emplace(plan, world);
    instructions_.reserve(plan.events.size());  // views are pointed to from here on
    for (const Event& e : plan.events) prepare(e);
    parts_ = begins_of_parts(plan);
  }
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the program once: one step.
  void run() {
    if (recording_ == nullptr) return walk([](const Instruction&, const Record&, auto happen) { happen(); });
    recording_->begin_step();
    walk([this](const Instruction& i, const Record& call, auto happen) { recording_->note(i.kind, i.node, call, happen); });
  }
  /// Notes from now on what happens; the recording outlives the runs.
  void record(Recording& recording) { recording_ = recording.active() ? &recording : nullptr; }

  /// Copies this rank's part of a whole input; `whole` has the elements of the full tensor (all micro-batches one behind the other).
  template <class T>
  void input(int position, const T* whole) {
    const Member& member = input_member(position);
    if (dtype_of<T> != member.type.dtype)
      throw std::invalid_argument("input " + std::to_string(position) + " is " + text(member.type) + ", but " + std::string(name_of(dtype_of<T>)) + " was given");
    View from = view(member.value);
    if (from.data == nullptr) return;  // only other stages take it
    for (int d = 0; d < from.rank; ++d) from.size[d] = from.whole[d], from.offset[d] = 0;
    from.data = const_cast<T*>(whole);
    Device::copy_overlap(from, view(member.value));
  }
  /// This rank's part of an input, to be written in place.
  View input(int position) { return view(input_member(position).value); }

  /// A run-time number of the program; names that the program does not read are accepted and go nowhere.
  void scalar(std::string_view name, double value) {
    for (std::size_t i = 0; i < g_.scalars.size(); ++i)
      if (g_.scalars[i].view() == name) reinterpret_cast<double*>(position_.address(g_.scalar_value))[i] = value;
  }
  int outputs() const { return g_.outputs.size(); }
  /// This rank's part of an output.
  View output(int i) { return view(g_.outputs[i]); }
  double output_scalar(int i) {
    const View v = output(i);
    return v.dtype == DType::f64 ? *v.as<double>() : static_cast<double>(*v.as<float>());
  }
  /// This rank's part of any value that outlives the step: parameters and state by member.
  View member(int i) { return view(g_.member(i).value); }
  const Plan& plan() const { return plan_; }
  int rank() const { return rank_; }
  /// The last step's updates were skipped on every rank, because the gradient norm was no finite number.
  bool skipped() const { return g_.commit >= 0 && *reinterpret_cast<const double*>(position_.address(g_.commit)) == 0; }

  /// Every communicator that the plan uses, by its axes ("data", "data+tensor").
  template <class F>
  void each_group(F f) {
    groups_->each(f);
  }

 private:
  using Instruction = parallel::Instruction<World>;
  std::byte*& block(Segment b) { return position_.blocks[static_cast<int>(b)]; }

  /// Every event in order; `as(instruction, call, happen)` lets it happen.
  template <class As>
  void walk(As as) {
    std::size_t slot = 0;
    for (std::size_t at = 0; at < instructions_.size();) {
      Instruction& i = instructions_[at++];
      if (i.in_parts) {  // the next part of this stage's work
        at = static_cast<std::size_t>(slot < g_.slots.size() ? parts_[g_.slots[slot].segment] : parts_.back());
        if (i.kind == EventKind::begin) fill_carries(i);
        position_.work_on(i.loop, slot < g_.slots.size() ? g_.slots[slot++] : Slot{});
        continue;
      }
      switch (i.kind) {
        case EventKind::compute:
          if (i.updates && skipped()) break;
          address(i);
          i.call.layer = position_.index(i.layers) + position_.layers_before(i.staged);
          i.call.micro_batch = position_.index(i.micro_batches);
          as(i, {}, [&] { i.compute(); });
          groups_->progress();
          break;
        case EventKind::start: start(i, as); break;
        case EventKind::wait:
          if (!i.crossing || under_way_[static_cast<std::size_t>(i.node)]) as(i, record_of(instructions_[i.jump].exchange, instructions_[i.jump].group->size()), [&] { wait(instructions_[i.jump]); });
          break;
        case EventKind::begin: enter(i, 0); break;
        case EventKind::end:
          if (++i.iteration < i.count)
            enter(i, i.iteration), at = i.jump;
          else
            position_.leave(i.loop);
          break;
      }
    }
  }

  void address(Instruction& i) {
    for (const Following& f : i.following) f.view->data = position_.address(*f.storage) + f.chunk * position_.chunk();
  }
  View view(int value) const { return position_.view(value); }

  const Member& input_member(int position) const {
    for (const Member& m : g_.members)
      if (m.role == Role::input && position-- == 0) return m;
    throw std::out_of_range("the program has no such input");
  }

  void prepare(const Event& e) {
    const Node& node = g_.node(e.node);
    instructions_.emplace_back();
    Instruction& i = instructions_.back();
    i.kind = e.kind;
    i.node = e.node;
    switch (e.kind) {
      case EventKind::compute: prepare_call(i, node, node.region == 0 ? -1 : e.chunk); break;
      case EventKind::start: prepare_exchange(i, node); break;
      case EventKind::wait:
        i.crossing = e.crossing, i.region = node.region;
        for (std::size_t s = 0; s < plan_.events.size() && (s < instructions_.size() || i.jump == 0); ++s)  // the last before it, else the first behind it
          if (plan_.events[s].kind == EventKind::start && plan_.events[s].node == e.node) i.jump = s;
        break;
      case EventKind::begin:
      case EventKind::end: {
        const Region& region = g_.region(node.region);
        i.loop = region.loop, i.count = region.count, i.region = node.region, i.in_parts = g_.in_parts(node.region);
        if (e.kind == EventKind::begin)
          for (const Carry& c : g_.carries) {
            if (c.region == node.region && plan_.storage[static_cast<std::size_t>(c.inside)].block != Segment::none && view(c.inside).data != view(c.initial).data && begins_here(c)) i.initial.emplace_back(c.initial, c.inside);
          }
        for (std::size_t s = instructions_.size() - 1; e.kind == EventKind::end && s-- > 0;)
          if (instructions_[s].kind == EventKind::begin && instructions_[s].region == node.region) {
            i.jump = s + 1, instructions_[s].jump = instructions_.size() - 1;
            break;
          }
        break;
      }
    }
  }

  /// Where the part that is prepared is the one to which the carried value belongs.
  bool begins_here(const Carry& c) const {
    int ended = 0;
    for (const Instruction& i : instructions_) ended += i.in_parts && i.kind == EventKind::end ? 1 : 0;
    return g_.slots.empty() || g_.in_parts(c.region) || part_of_[g_.value(c.inside).node] == ended % g_.parts;
  }

  /// `region`: of the node that sees the value. Within a stage's work a stack of layers is the chunk's part of it.
  void follow(Instruction& i, View& v, int value, int region) {
    const Storage& s = plan_.storage[static_cast<std::size_t>(value)];
    const Layout& layout = g_.value(value).type.layout;
    std::int64_t chunk = 0;
    if (!g_.slots.empty() && g_.schedule->chunks > 1 && region > 0 && layout.rank() > 0 && layout.dims[0].split_by(g_.stages) && plan_.mesh.extent(g_.stages) > 1) {
      v.size[0] /= g_.schedule->chunks;
      chunk = v.elements() * bytes_of(v.dtype);
    }
    if (s.stride != 0 || s.lane != 0 || chunk != 0) i.following.push_back({&v, &s, chunk});
  }

  void prepare_call(Instruction& i, const Node& node, int chunk) {
    for (const int o : node.operands) i.call.operands.push_back(view(o));
    for (int r = 0; r < node.results; ++r) i.call.results.push_back(view(node.result + r));
    i.call.ints = node.ints;
    i.call.reals[0] = node.reals[0], i.call.reals[1] = node.reals[1];
    i.updates = node.phase == Phase::optimizer && node.operation->updates;
    for (int r = node.region; r > 0; r = g_.region(r).parent)
      (g_.region(r).kind == RegionKind::layers ? i.layers : i.micro_batches) = g_.region(r).loop;
    for (int r = node.region; r > 0; r = g_.region(r).parent)
      if (g_.region(r).staged) i.staged = r;
    for (int o = 0; o < node.operands.size(); ++o) follow(i, i.call.operands[o], node.operands[o], node.region);
    for (int r = 0; r < node.results; ++r) follow(i, i.call.results[r], node.result + r, node.region);
    if (node.operation == &operation::move)
      i.kernel = local_move<Device>(node.transition, plan_, rank_, chunk);
    else
      find_kernel(i, *node.operation, i.call);
    if (i.kernel == nullptr && node.operation == &operation::move)
      throw CannotRun("the plan moves " + text(g_.value(node.operands[0]).type) + " to " + text(node.transition.to) + " on " + text(node.transition.axes) +
                      "; values that only some ranks hold (At) can be planned, not run");
  }

  /// The device's kernel, or of a fused operation the kernels of its parts.
  void find_kernel(Instruction& i, const Operation& operation, const Call& call) {
    i.kernel = device_.kernel(operation, call);
    if (i.kernel != nullptr) return;
    const operation::Fusion* fusion = operation::fusion_of(operation);
    if (fusion == nullptr)
      throw CannotRun("this device has no kernel for the operation " + std::string(operation.name) + " on " + std::string(name_of(call.results[0].dtype)) +
                      "; give the device one, or use another element type");
    const SplitCall two = split(*fusion, call);
    find_kernel(i, *fusion->then, two.then);
    const Kernel then = i.kernel;
    find_kernel(i, *fusion->first, two.first);
    i.joined.push_back({fusion, then});
  }

  void prepare_exchange(Instruction& i, const Node& node) {
    const Transition& t = node.transition;
    if (t.collective > Collective::all_to_all && t.along == 0 && (t.collective != Collective::broadcast || g_.slots.empty()))
      throw CannotRun("the plan has a " + std::string(name_of(t.collective)) + " of " + text(g_.value(node.operands[0]).type) +
                      "; values that only some ranks hold (At) can be planned, not run");
    i.call.operands.push_back(view(node.operands[0]));
    i.call.results.push_back(view(node.result));
    follow(i, i.call.operands[0], node.operands[0], node.region);
    follow(i, i.call.results[0], node.result, node.region);
    const View& in = i.call.operands[0];
    const View& out = i.call.results[0];
    i.group = &groups_->of(t);
    const std::int64_t n = participants(t, plan_.mesh);
    const int stages = plan_.mesh.extent(t.axes);
    if (t.along != 0) i.exchange.peer = (plan_.mesh.here + (t.collective == Collective::send ? t.along : stages - t.along) + stages) % stages;
    if (t.collective == Collective::broadcast)
      while (!holds(t.from, i.exchange.root, stages)) ++i.exchange.root;
    i.exchange.kind = t.collective;
    i.exchange.count = in.elements() > out.elements() ? in.elements() : out.elements();
    i.exchange.dtype = in.dtype;
    i.exchange.maximum = t.maximum;
    i.exchange.label = node.member >= 0 ? g_.member(node.member).path.characters : g_.origin(node).source.file;
    std::byte* room = arena_.data() + plan_.packing[static_cast<std::size_t>(i.node)];
    if (t.collective == Collective::reduce_scatter || t.collective == Collective::all_to_all)
      i.before = {in.extent(0, t.to.dim), n, out.extent(t.to.dim, t.to.dim + 1) * in.extent(t.to.dim + 1, in.rank)};
    if (t.collective == Collective::all_gather) i.after = {in.extent(0, t.from.dim), n, in.extent(t.from.dim, in.rank)};
    if (t.collective == Collective::all_to_all) i.after = {out.extent(0, t.from.dim), n, in.extent(t.from.dim, t.from.dim + 1) * out.extent(t.from.dim + 1, out.rank)};
    if (i.before.needed()) i.packed = room;
    if (i.after.needed()) i.received = t.collective == Collective::all_to_all ? room + aligned(in.elements() * bytes_of(in.dtype)) : room;
  }

  template <class As>
  void start(Instruction& i, As as) {
    address(i);
    const View& in = i.call.operands[0];
    const View& out = i.call.results[0];
    if (i.packed != nullptr) Device::pack(in.data, i.packed, i.before.outer, i.before.n, i.before.inner, bytes_of(in.dtype));
    i.exchange.in = i.packed != nullptr ? i.packed : in.data;
    i.exchange.out = i.received != nullptr ? i.received : out.data;
    under_way_[static_cast<std::size_t>(i.node)] = true;
    as(i, record_of(i.exchange, i.group->size()), [&] { tickets_[static_cast<std::size_t>(i.node)] = i.group->start(i.exchange); });
  }
  void wait(Instruction& i) {
    under_way_[static_cast<std::size_t>(i.node)] = false;
    i.group->wait(tickets_[static_cast<std::size_t>(i.node)]);
    const View& out = i.call.results[0];
    if (i.received != nullptr) Device::unpack(i.received, out.data, i.after.outer, i.after.n, i.after.inner, bytes_of(out.dtype));
  }

  /// The first instruction of an iteration; before the first one carried values take what they begin with.
  void enter(Instruction& i, int iteration) {
    position_.iterate(i.region, iteration);
    if (i.kind == EventKind::begin) fill_carries(i), instructions_[i.jump].iteration = 0;
  }
  void fill_carries(const Instruction& i) {
    for (const auto& [from, to] : i.initial) Device::copy(view(to), view(from));
  }

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  Position position_;
  HostMemory arena_;
  HostMemory own_[6]{};
  Device device_;
  std::optional<Groups<World>> groups_{};
  Vector<int> parts_{};                  // where the parts of a stage's work begin
  Vector<int> part_of_ = parts_of(g_);
  std::vector<Instruction> instructions_{};
  std::vector<Ticket> tickets_{};        // per node, and whether it has been started and not waited for
  std::vector<bool> under_way_{};
  Recording* recording_ = nullptr;
};

}  // namespace parallel
