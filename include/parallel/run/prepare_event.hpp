// From an event of a plan to an instruction: kernels, addresses, counts, the group of ranks.
#pragma once
#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include <parallel/algebra/notation.hpp>
#include <parallel/communicator/communicator.hpp>
#include <parallel/device/device.hpp>
#include <parallel/device/host.hpp>
#include <parallel/plan/packed_once.hpp>
#include <parallel/plan/taking_part.hpp>
#include <parallel/plan/walk.hpp>
#include <parallel/run/failure.hpp>
#include <parallel/run/groups.hpp>
#include <parallel/run/instruction.hpp>
#include <parallel/run/local_move.hpp>
#include <parallel/run/looking.hpp>
#include <parallel/run/position.hpp>
#include <parallel/run/prepare_exchange.hpp>

namespace parallel::internals {

template <Communicator World, Device Device>
class PrepareEvent {
  using Instruction = parallel::internals::Instruction<World>;
  using Host = typename HostOf<Device>::type;

 public:
  /// `position`: of the rank whose memory instructions are to lie in. All outlives this.
  PrepareEvent(const Plan& plan, const Position& position, Groups<World>& groups, const Device& device,
               const Host& host, const std::optional<Looking>& looking, int rank)
      : plan_(plan),
        g_(plan.graph),
        position_(position),
        groups_(groups),
        device_(device),
        host_(host),
        looking_(looking),
        rank_(rank) {}

  /// `i` is new, and stays where it is, as its views are pointed to. Throws CannotRun.
  void operator()(Instruction& i, const Event& e) const {
    const Node& node = g_.node(e.node);
    i.kind = takes_part(plan_, e, rank_) ? e.kind : EventKind::end;  // at which nothing happens
    i.node = e.node;
    switch (i.kind) {
      case EventKind::compute: prepare_calls(i, e); break;
      case EventKind::start:
        i.calls.push_back({.operands = {position_.view(node.operands[0])}, .results = {position_.view(node.result)}});
        follow(i, i.calls[0].operands[0], node.operands[0], node.region);
        follow(i, i.calls[0].results[0], node.result, node.region);
        i.ahead = e.ahead ? int{node.region} : -1;
        i.in_last = node.in_last;
        i.jump = e.partner;
        if (copies(node.transition.collective)) {
          i.exchange = Exchange{.kind = node.transition.collective,
                                .count = i.calls[0].operands[0].elements(),
                                .dtype = i.calls[0].operands[0].dtype};
          break;
        }
        i.group = &groups_.of(node.transition);
        prepare_exchange(
            i, node, plan_, rank_,
            position_.blocks[static_cast<int>(MemoryBlock::arena)] + plan_.packing[static_cast<std::size_t>(e.node)]);
        if (View& out = i.calls[0].results[0];  // what comes to several ranks comes to all
            out.data == nullptr && elements_out(i.exchange, i.group->rank(), i.group->size()) > 0)
          out.data = position_.address(node.result);
        for (Call& call : i.pad) device_.prepare(call);
        for (Call& call : i.unpad) device_.prepare(call);
        break;
      case EventKind::wait:
        i.crossing = e.crossing || node.in_last >= 0;
        i.jump = e.partner;
        break;
      case EventKind::begin:
        i.region = node.region;
        i.jump = e.partner;
        for (const Carry& c : g_.carries)
          if (c.region == node.region && plan_.storage[static_cast<std::size_t>(c.inside)].block != MemoryBlock::none &&
              position_.view(c.inside).data != position_.view(c.initial).data &&
              stands_in(e.part, g_.value(c.inside).node))
            i.initial.emplace_back(c.initial, c.inside);
        break;
      case EventKind::end: break;
    }
  }

 private:
  /// Several parts of a stage may have something of one loop. Whether a node is of what `part` has; outside parts every
  /// node is.
  bool stands_in(int part, int node) const {
    if (part < 0) return true;
    const auto nodes = g_.order.begin();
    return std::find(nodes + g_.part(part).begin, nodes + g_.part(part).end, node) != nodes + g_.part(part).end;
  }

  /// `region`: of the node that sees the value. Within a stage's work a stack of layers is the chunk's slice of it.
  void follow(Instruction& i, View& v, int value, int region) const {
    const Storage& s = plan_.storage[static_cast<std::size_t>(value)];
    const Layout& layout = g_.value(value).type.layout;
    std::int64_t chunk = 0;
    if (const int chunks = layout.rank() > 0 ? chunks_of(g_, layout.dims[0], plan_.mesh) : 1;
        chunks > 1 && region > 0) {
      v.size[0] /= chunks;
      chunk = v.elements() * bytes_of(v.dtype);
    }
    if (s.stride != 0 || s.lane != 0 || chunk != 0) i.following.push_back({&v, &s, chunk});
  }

  void prepare_calls(Instruction& i, const Event& e) const {
    const Node& first = g_.node(e.node);
    i.updates = first.phase == Phase::optimizer && first.operation->updates;
    i.on_host = on_host(g_.value(first.result).type.layout);
    for (int r = first.region; r > 0; r = g_.region(r).parent)
      if (goes_back(g_.region(r).kind)) {
        i.layers = g_.region(r).loop;
        i.blocks = g_.region(r).blocks;
      } else {
        i.micro_batches = g_.region(r).loop;
      }
    for (int r = first.region; r > 0; r = g_.region(r).parent)
      if (g_.region(r).staged) i.staged = r;
    i.calls.reserve(static_cast<std::size_t>(e.nodes));  // views are pointed to from here on
    i.on_host ? prepare_calls(i, e, host_.device()) : prepare_calls(i, e, device_);
  }
  template <class On>
  void prepare_calls(Instruction& i, const Event& e, const On& device) const {
    const Node& first = g_.node(e.node);
    each_node(g_, e, [&](int n) { prepare_call(i, g_.node(n), device); });
    if (!first.is(Structural::move)) return find_kernels(i, looking_ && looking_->apart(e), device);
    if (first.transition.to.flat && first.transition.collective == Collective::slice)
      flatten(i.calls[0], first, plan_, rank_);
    i.calls[0].kernel = local_move<On>(first.transition, plan_, rank_, e.part < 0 ? -1 : g_.part(e.part).chunk);
    i.launches.push_back({i.calls});
  }
  template <class On>
  void prepare_call(Instruction& i, const Node& node, const On& device) const {
    Call& call = i.calls.emplace_back();
    call.operation = node.operation;
    for (const int o : node.operands) call.operands.push_back(position_.view(o));
    for (int r = 0; r < node.results; ++r) call.results.push_back(position_.view(node.result + r));
    call.ints = node.ints;
    call.reals[0] = node.reals[0];
    call.reals[1] = node.reals[1];
    device.prepare(call);
    if (i.updates && g_.commit >= 0 && g_.value(node.result).kind == Kind::parameter)  // else its own work in place
      call.commit = call.operands[call.operands.size() - 1].as<const double>();
    if constexpr (requires { device.keeps_packed(); }) keep_packed(call, node, device);
    for (int o = 0; o < node.operands.size(); ++o) follow(i, call.operands[o], node.operands[o], node.region);
    for (int r = 0; r < node.results; ++r) follow(i, call.results[r], node.result + r, node.region);
  }

  /// What a step multiplies by several times, and a device keeps from one time to the next.
  template <class On>
  void keep_packed(Call& call, const Node& node, const On& device) const {
    if (packed_.size() == 0) return;
    const PackedOnce of_node = packed_once(plan_, node, On::account);
    for (int p = 0; p < packed_.size(); ++p)
      if (packed_[p] == of_node) device.keep_packed(call, p, of_node.slots, of_node.storage.stride, of_node.bytes);
  }
  static Vector<PackedOnce> kept_by(const Device& device, const Plan& plan) {
    if constexpr (requires { device.keeps_packed(); })
      if (device.keeps_packed()) return packed_once(plan, Device::account);
    return {};
  }

  /// The device's kernels: as many calls at once as it has one for.
  template <class On>
  static void find_kernels(Instruction& i, bool apart, const On& device) {
    for (std::span<Call> left = i.calls; !left.empty();) {
      FusedKernel kernel{};
      std::size_t n = left.size();
      while (n > 1 && (apart || !(kernel = device.fused(left.first(n))))) --n;
      if (n == 1) left[0].kernel = device.kernel(*left[0].operation, left[0]);
      if (n == 1 && left[0].kernel == nullptr)
        throw CannotRun("this device has no kernel for the operation " + std::string(left[0].operation->name) + " on " +
                        std::string(name_of(left[0].results[0].dtype)) +
                        (left[0].results[0].dtype == DType::f64
                             ? "; run it with CpuDouble in place of Cpu, or give the device a kernel"
                             : "; give the device one, or use another element type"));
      i.launches.push_back({left.first(n), kernel});
      left = left.subspan(n);
    }
  }

  const Plan& plan_;
  const GraphView& g_;
  const Position& position_;
  Groups<World>& groups_;
  const Device& device_;
  const Host& host_;
  const std::optional<Looking>& looking_;  // none: no step is looked into
  const Vector<PackedOnce> packed_ = kept_by(device_, plan_);
  int rank_;
};

}  // namespace parallel::internals
