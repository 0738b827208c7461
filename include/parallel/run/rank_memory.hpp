// What a rank holds of a program on its device: blocks of memory, and in them inputs, outputs, members, numbers of the run.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

#include <parallel/device/device.hpp>
#include <parallel/run/block_layout.hpp>
#include <parallel/run/check_ranks.hpp>
#include <parallel/run/parameters.hpp>
#include <parallel/run/position.hpp>

namespace parallel {

template <Device Device>
class RankMemory {
 public:
  /// Copies this rank's part of a whole input; `whole` has the elements of the full tensor (all micro-batches one behind the other).
  template <class T>
  void input(int position, const T* whole) {
    const Member& member = input_member(position);
    if (dtype_of<T> != member.type.dtype)
      throw std::invalid_argument("input " + std::to_string(position) + " is " + text(member.type) + ", but " + std::string(name_of(dtype_of<T>)) + " was given");
    const View to = view(member.value);
    if (to.data == nullptr) return;  // only other stages take it
    View from = to;
    for (int d = 0; d < from.rank; ++d) from.size[d] = from.whole[d], from.offset[d] = 0;
    from.data = const_cast<T*>(whole);
    device_.take(from, to);
  }
  /// This rank's part of an input, to be written in place on the device.
  View input(int position) { return view(input_member(position).value); }

  /// A run-time number of the program; names that the program does not read are accepted and go nowhere.
  void scalar(std::string_view name, double value) {
    for (std::size_t i = 0; i < g_.scalars.size(); ++i)
      if (g_.scalars[i].view() == name) reinterpret_cast<double*>(scalars_.host() + (position_.address(g_.scalar_value) - scalars_.data()))[i] = value;
  }
  int outputs() const { return static_cast<int>(g_.outputs.size()); }
  /// This rank's part of an output.
  View output(int i) { return position_.part(g_.outputs[static_cast<std::size_t>(i)]); }
  double output_scalar(int i) {
    const View v = output(i);
    return v.dtype == DType::f64 ? read<double>(v.data) : v.dtype == DType::bf16 ? static_cast<double>(static_cast<float>(read<bfloat16>(v.data))) : static_cast<double>(read<float>(v.data));
  }
  /// A part where the host can read it: as it is, or copied into `room` when all before is done.
  View on_host(View v, std::vector<std::byte>& room) const {
    if (!Device::asynchronous || v.data == nullptr) return v;
    room.resize(static_cast<std::size_t>(v.elements() * bytes_of(v.dtype)));
    device_.read(room.data(), v.data, v.elements() * bytes_of(v.dtype));
    v.data = room.data();
    return v;
  }
  /// This rank's part of any value that outlives the step: parameters and state by member.
  View member(int i) { return position_.part(g_.member(i).value); }
  const Plan& plan() const { return plan_; }
  int rank() const { return rank_; }
  /// The last step's updates were skipped on every rank, because the gradient norm was no finite number.
  bool skipped() const { return g_.commit >= 0 && read<double>(position_.address(g_.commit)) == 0; }

 protected:
  /// Throws CannotRun, and what the device throws where it has not enough memory for the plan's account.
  RankMemory(const Plan& plan, int rank, int size, ParametersIn<MemoryOf<Device>>& parameters, const Device& device, const RankMemory* before)
      : plan_(plan), g_(plan.graph), position_(plan, rank), device_(device), rank_(rank) {
    check_ranks(plan, rank, size);
    block(Segment::parameter) = parameters.data(plan);
    const auto bytes = [&](Segment b) { return b == Segment::arena ? plan.memory.arena : plan.memory.blocks[static_cast<int>(b)]; };
    const auto own = [&](Segment b) { block(b) = own_.emplace_back(device_.memory(bytes(b))).data(); };
    const std::int64_t state = before == nullptr ? bytes(Segment::state) : 0;
    if constexpr (requires { device.need(state); }) device.need(state + bytes(Segment::input) + bytes(Segment::scalars) + bytes(Segment::arena));
    if (before == nullptr) own(Segment::state);
    if (before != nullptr) block(Segment::state) = before->remembered(plan);
    own(Segment::input), own(Segment::arena);
    scalars_ = device_.mirrored(bytes(Segment::scalars)), block(Segment::scalars) = scalars_.data();
  }
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  /// The memory of what was remembered, for a program that goes on from there.
  std::byte* remembered(const Plan& next) const {
    check_alike(block_layout(plan_, Role::state), block_layout(next, Role::state), "two programs that are to remember together remember different tensors",
                "take the same model, room, mesh and schedule, and programs that only remember");
    return position_.blocks[static_cast<int>(Segment::state)];
  }
  std::byte*& block(Segment b) { return position_.blocks[static_cast<int>(b)]; }
  View view(int value) const { return position_.view(value); }

  const Plan& plan_;
  const GraphView& g_;
  Position position_;
  Device device_;
  MirroredOf<Device> scalars_{};

 private:
  template <class T>
  T read(const void* from) const {
    T result;
    device_.read(&result, from, sizeof result);
    return result;
  }
  const Member& input_member(int position) const {
    for (const Member& m : g_.members)
      if (m.role == Role::input && position-- == 0) return m;
    throw std::out_of_range("the program has no such input");
  }

  int rank_;
  std::vector<MemoryOf<Device>> own_{};  // blocks
};

}  // namespace parallel
