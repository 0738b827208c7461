// Walks a plan on one rank. Everything that can be known before the first step is: kernels, addresses, counts, groups of ranks.
#pragma once
#include <map>
#include <string>
#include <vector>

#include <parallel/communicator/communicator.hpp>
#include <parallel/device/kernel.hpp>
#include <parallel/plan/derive.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/instruction.hpp>
#include <parallel/run/memory.hpp>
#include <parallel/run/recording.hpp>
#include <parallel/run/remembered.hpp>

namespace parallel {

template <Communicator World, class Device>
class Executor {
 public:
  /// `parameters`: the block of the program's parameters on this rank, `plan.memory.blocks[parameter]` bytes; programs over one model and mesh
  /// share it. `before`: an executor whose memory (`remember`) this one shares. Both and the plan must outlive it. Called by all ranks together.
  Executor(const Plan& plan, World& world, std::byte* parameters, const Device& device = {}, const Executor* before = nullptr)
      : plan_(plan), g_(plan.graph), rank_(world.rank()), arena_(plan.memory.arena), device_(device) {
    if (world.size() != plan.mesh.ranks())
      throw CannotRun("the mesh " + text(plan.mesh) + " has " + std::to_string(plan.mesh.ranks()) + " ranks, but " + std::to_string(world.size()) +
                      " were started; start as many ranks as the mesh has");
    for (int b = 0; b < 6; ++b)
      if (static_cast<Segment>(b) != Segment::parameter && (before == nullptr || static_cast<Segment>(b) != Segment::state)) own_[b] = HostMemory(plan.memory.blocks[b]);
    for (int b = 0; b < 6; ++b) blocks_[b] = own_[b].data();
    if (before != nullptr) check_remembered(plan, before->plan()), blocks_[static_cast<int>(Segment::state)] = before->blocks_[static_cast<int>(Segment::state)];
    blocks_[static_cast<int>(Segment::parameter)] = parameters;
    blocks_[static_cast<int>(Segment::arena)] = arena_.data();
    index_.resize(g_.regions.size());
    tickets_.resize(g_.nodes.size());
    for (const Event& e : plan.events)
      if (e.kind == EventKind::start && !groups_.contains(text(g_.node(e.node).transition.axes)))
        groups_.emplace(text(g_.node(e.node).transition.axes), group(world, plan.mesh, g_.node(e.node).transition.axes));
    instructions_.reserve(plan.events.size());  // views are pointed to from here on
    for (const Event& e : plan.events) prepare(e);
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
    for (int d = 0; d < from.rank; ++d) from.size[d] = from.whole[d], from.offset[d] = 0;
    from.data = const_cast<T*>(whole);
    Device::copy_overlap(from, view(member.value));
  }
  /// This rank's part of an input, to be written in place.
  View input(int position) { return view(input_member(position).value); }

  /// A run-time number of the program; names that the program does not read are accepted and go nowhere.
  void scalar(std::string_view name, double value) {
    for (std::size_t i = 0; i < g_.scalars.size(); ++i)
      if (g_.scalars[i].view() == name) reinterpret_cast<double*>(address(g_.scalar_value))[i] = value;
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
  bool skipped() const { return g_.commit >= 0 && *reinterpret_cast<const double*>(address(g_.commit)) == 0; }

  /// Every communicator that the plan uses, by its axes ("data", "data+tensor").
  template <class F>
  void each_group(F f) {
    for (auto& [name, group] : groups_) f(name, group);
  }

 private:
  using Instruction = parallel::Instruction<World>;

  /// Every event in order; `as(instruction, call, happen)` lets it happen.
  template <class As>
  void walk(As as) {
    for (std::size_t at = 0; at < instructions_.size();) {
      Instruction& i = instructions_[at++];
      switch (i.kind) {
        case EventKind::compute:
          if (i.updates && skipped()) break;
          address(i);
          i.call.layer = index_[static_cast<std::size_t>(i.layers)];
          i.call.micro_batch = index_[static_cast<std::size_t>(i.micro_batches)];
          as(i, {}, [&] { i.kernel(i.call); });
          break;
        case EventKind::start: start(i, as); break;
        case EventKind::wait:
          if (!i.crossing || !first_iteration(i.region)) as(i, record_of(instructions_[i.jump].exchange, instructions_[i.jump].group->size()), [&] { wait(instructions_[i.jump]); });
          break;
        case EventKind::begin: enter(i, 0); break;
        case EventKind::end:
          if (++i.iteration < i.count)
            enter(i, i.iteration), at = i.jump;
          else
            index_[static_cast<std::size_t>(i.loop)] = 0;
          break;
      }
    }
  }

  bool first_iteration(int r) const {
    const Region& region = g_.region(r);
    return index_[static_cast<std::size_t>(region.loop)] == (region.reversed ? region.count - 1 : 0);
  }
  std::byte* address(int value) const { return address(plan_.storage[static_cast<std::size_t>(value)]); }
  std::byte* address(const Storage& s) const {
    std::byte* base = blocks_[static_cast<int>(s.block)] + s.offset;
    if (s.stride == 0) return base;
    std::int64_t slot = index_[static_cast<std::size_t>(s.loop)];
    if (s.modulo > 0) {
      const Region& region = g_.region(s.region);
      slot = ((region.reversed ? region.count - 1 - slot : slot) + s.shift) % s.modulo;
    }
    return base + slot * s.stride;
  }
  void address(Instruction& i) {
    for (const Following& f : i.following) f.view->data = address(*f.storage);
  }

  View view(int value) const {
    const Type& type = g_.value(value).type;
    View v;
    v.dtype = type.dtype;
    v.rank = type.layout.rank();
    for (int d = 0; d < v.rank; ++d) {
      const Dim& dim = type.layout.dims[d];
      v.size[d] = local(dim, plan_.mesh), v.offset[d] = offset(dim, plan_.mesh, rank_), v.whole[d] = dim.size;
    }
    v.data = plan_.storage[static_cast<std::size_t>(value)].block == Segment::none ? nullptr : address(value);
    return v;
  }

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
      case EventKind::compute: prepare_call(i, node); break;
      case EventKind::start: prepare_exchange(i, node); break;
      case EventKind::wait:
        i.crossing = e.crossing, i.region = node.region;
        for (std::size_t s = 0; s < plan_.events.size(); ++s)
          if (plan_.events[s].kind == EventKind::start && plan_.events[s].node == e.node) i.jump = s;
        break;
      case EventKind::begin:
      case EventKind::end: {
        const Region& region = g_.region(node.region);
        i.loop = region.loop, i.count = region.count, i.region = node.region;
        if (e.kind == EventKind::begin)
          for (const Carry& c : g_.carries) {
            if (c.region == node.region && plan_.storage[static_cast<std::size_t>(c.inside)].block != Segment::none) i.initial.emplace_back(c.initial, c.inside);
          }
        for (std::size_t s = 0; s + 1 < instructions_.size(); ++s)
          if (e.kind == EventKind::end && instructions_[s].kind == EventKind::begin && instructions_[s].region == node.region)
            i.jump = s + 1, instructions_[s].jump = instructions_.size() - 1;
        break;
      }
    }
  }

  void follow(Instruction& i, View& v, int value) {
    const Storage& s = plan_.storage[static_cast<std::size_t>(value)];
    if (s.stride != 0) i.following.push_back({&v, &s});
  }

  void prepare_call(Instruction& i, const Node& node) {
    for (const int o : node.operands) i.call.operands.push_back(view(o));
    for (int r = 0; r < node.results; ++r) i.call.results.push_back(view(node.result + r));
    i.call.ints = node.ints;
    i.call.reals[0] = node.reals[0], i.call.reals[1] = node.reals[1];
    i.updates = node.phase == Phase::optimizer && node.operation->updates;
    for (int r = node.region; r > 0; r = g_.region(r).parent)
      (g_.region(r).kind == RegionKind::layers ? i.layers : i.micro_batches) = g_.region(r).loop;
    for (int o = 0; o < node.operands.size(); ++o) follow(i, i.call.operands[o], node.operands[o]);
    for (int r = 0; r < node.results; ++r) follow(i, i.call.results[r], node.result + r);
    if (node.operation == &operation::move)
      i.kernel = local_move(node);
    else
      i.kernel = device_.kernel(*node.operation, i.call);
    if (i.kernel == nullptr && node.operation == &operation::move)
      throw CannotRun("the plan moves " + text(g_.value(node.operands[0]).type) + " to " + text(node.transition.to) + " on " + text(node.transition.axes) +
                      "; values that only some ranks hold (At) can be planned, not run");
    if (i.kernel == nullptr)
      throw CannotRun("this device has no kernel for the operation " + std::string(node.operation->name) + " on " +
                      std::string(name_of(g_.value(node.result).type.dtype)) + "; give the device one, or use another element type");
  }

  Kernel local_move(const Node& node) const {
    if (node.transition.collective == Collective::retype || plan_.mesh.extent(node.transition.axes) == 1)
      return [](const Call& c) { Device::copy(c.results[0], c.operands[0]); };
    switch (node.transition.collective) {
      case Collective::slice:
      case Collective::zero_pad: return [](const Call& c) { Device::copy_overlap(c.operands[0], c.results[0]); };
      case Collective::mask:
        if (plan_.mesh.coordinate(rank_, node.transition.axes) == 0) return [](const Call& c) { Device::copy(c.results[0], c.operands[0]); };
        return [](const Call& c) { Device::zero(c.results[0]); };
      default: return nullptr;
    }
  }

  void prepare_exchange(Instruction& i, const Node& node) {
    const Transition& t = node.transition;
    if (t.collective > Collective::all_to_all)
      throw CannotRun("the plan has a " + std::string(name_of(t.collective)) + " of " + text(g_.value(node.operands[0]).type) +
                      "; values that only some ranks hold (At) can be planned, not run");
    i.call.operands.push_back(view(node.operands[0]));
    i.call.results.push_back(view(node.result));
    follow(i, i.call.operands[0], node.operands[0]);
    follow(i, i.call.results[0], node.result);
    const View& in = i.call.operands[0];
    const View& out = i.call.results[0];
    i.group = &groups_.at(text(t.axes));
    const std::int64_t n = plan_.mesh.extent(t.axes);
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
    as(i, record_of(i.exchange, i.group->size()), [&] { tickets_[static_cast<std::size_t>(i.node)] = i.group->start(i.exchange); });
  }
  void wait(Instruction& i) {
    i.group->wait(tickets_[static_cast<std::size_t>(i.node)]);
    const View& out = i.call.results[0];
    if (i.received != nullptr) Device::unpack(i.received, out.data, i.after.outer, i.after.n, i.after.inner, bytes_of(out.dtype));
  }

  /// The first instruction of an iteration; before the first one carried values take what they begin with.
  void enter(Instruction& i, int iteration) {
    const Region& region = g_.region(i.region);
    index_[static_cast<std::size_t>(i.loop)] = region.reversed ? region.count - 1 - iteration : iteration;
    if (i.kind == EventKind::begin) {
      for (const auto& [from, to] : i.initial) Device::copy(view(to), view(from));
      instructions_[i.jump].iteration = 0;
    }
  }

  const Plan& plan_;
  const GraphView& g_;
  int rank_;
  HostMemory arena_;
  HostMemory own_[6]{};
  std::byte* blocks_[6]{};
  Device device_;
  std::map<std::string, World> groups_{};
  std::vector<Instruction> instructions_{};
  std::vector<std::int64_t> index_{};
  std::vector<Ticket> tickets_{};
  Recording* recording_ = nullptr;
};

}  // namespace parallel
