// What a rank holds of a program on its device: blocks of memory, and in them inputs, outputs, members, numbers of the
// run.
#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <parallel/device/host.hpp>
#include <parallel/plan/packed_once.hpp>
#include <parallel/run/block_layout.hpp>
#include <parallel/run/check_ranks.hpp>
#include <parallel/run/handed_name.hpp>
#include <parallel/run/index_range.hpp>
#include <parallel/run/kept_plan.hpp>
#include <parallel/run/numbers.hpp>
#include <parallel/run/parameters.hpp>
#include <parallel/run/position.hpp>
#include <parallel/run/scalars.hpp>
#include <parallel/run/whole.hpp>

namespace parallel::internals {

/// A tensor that outlives the step: a parameter, or state of an optimizer, or what a program remembers.
struct NamedTensor {
  std::string name;
  Role role = Role::parameter;
  Type type{};  ///< as it lies at rest; whole it has type.layout.elements() of type.dtype
};

template <Device Device>
class RankMemory {
 public:
  /// Copies this rank's part of a whole input: a vector, a std::span, a matrix, or one number. `whole` has
  /// the elements of the full tensor in row-major order, all micro-batches one behind the other. Or has a callable make
  /// that part: elements from a first one on, `[&](std::size_t first, std::span<float> run) { ... }`, or each by where
  /// it stands, `[&](std::size_t i) { return ...; }`. Throws Misuse where it does not fit, or has an index out of its
  /// range (bad_data).
  template <class A>
  void input(int position, A&& whole) {
    put(position, numbers_of(whole));
  }
  template <class T>
  void input(int position, std::initializer_list<T> whole) {
    input(position, std::span<const T>(whole.begin(), whole.size()));
  }
  template <class Name, class T>
  requires(std::is_convertible_v<Name, std::string_view>) void input(Name&& name, std::initializer_list<T> whole) {
    input(name, std::span<const T>(whole));
  }
  template <class Name, class A>
  requires(std::is_convertible_v<Name, std::string_view>) void input(Name&&, A&&) {
    static_assert(sizeof(A) > 99999,
                  "parallel: inputs have no names, but the order of the program's Tensors, from 0; write input(0, x), "
                  "or step(x, y) with all of them");
  }
  /// All of them, in the order of the program's. Throws Misuse, too, where there are others.
  void inputs(std::span<const HandedInput> all) {
    std::size_t given = 0;
    while (given < all.size() && all[given].given) ++given;
    if (given != inputs_.size())
      throw Misuse("the program takes " + std::to_string(inputs_.size()) + " inputs, but " + std::to_string(given) +
                   " were given; give one for each, in the order of the program's types");
    for (std::size_t i = 0; i < given; ++i) put(static_cast<int>(i), all[i]);
  }
  /// This rank's part of an input, to be written in place on the device.
  View input(int position) {
    Input& own = input_of(position);
    own.given = own.in_place = true;
    return view(g_.member(own.member).value);
  }

  /// Sets a run-time number of the program. Throws Misuse where it reads none of this name, or the number is out of its
  /// range: a learning rate from 0 on, a whole step.
  void scalar(HandedName name, double value) { scalars_.set(name, value); }
  /// The same of a number of all groups (`Grouped`).
  void scalar_of_all(HandedName name, double value) { scalars_.set_all(name, value); }
  /// The number as the next step reads it: with it another run goes on. Throws Misuse where the program reads none of
  /// this name, or it was never set.
  double scalar(HandedName name) {
    return scalars_.get(name, [&] { return skipped(); });
  }
  bool reads(HandedName name) const { return scalars_.reads(name); }
  /// All of them, in the order in which the program reads them.
  std::vector<NamedNumber> numbers() {
    std::vector<NamedNumber> all;
    scalars_.each([&](std::string_view name, double) {
      all.push_back({std::string(name), {}, default_of(g_, number_called(name))});
      if (scalars_.has(name)) all.back().value = scalar(name);
    });
    return all;
  }
  /// How the loss of the next step is scaled, and what is to be gone on with. Throws Misuse where the program is not
  /// LossScaled, and for what is no scale; alike on all ranks.
  LossScale loss_scale() {
    return scalars_.loss_scale([&] { return skipped(); });
  }
  void loss_scale(const LossScale& to) { scalars_.scale_loss(to); }
  int outputs() const { return static_cast<int>(g_.outputs.size()); }
  /// This rank's part of an output. Throws Misuse before the first step.
  View output(int i) {
    const View part = output_part(i);
    check_begun("output " + std::to_string(i));
    return part;
  }
  /// The same by its name. Throws Misuse, too, where there is none.
  View output(HandedName name) { return output(position_of(name)); }
  /// An output of one element, as a number. Throws Misuse before the first step, too.
  double output_scalar(int i);
  double output_scalar(HandedName name) { return output_scalar(position_of(name)); }
  /// What outputs are called, in their order: of a training `loss`, `gradient_norm`, and `PATH.gradient` of what is
  /// asked for; of an evaluation `result`, or as the members of the struct that the model returns.
  std::vector<std::string> output_names() const {
    std::vector<std::string> all;
    for (const Output& o : g_.outputs) all.emplace_back(g_.text(o.name));
    return all;
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
  View member(int i) {
    check_position("member", i, static_cast<int>(g_.members.size()));
    return position_.part(g_.member(i).value);
  }
  /// What outlives the step, by name, in the order of the model: parameters, what the optimizer remembers of each, what
  /// a program remembers.
  std::vector<NamedTensor> tensors() const {
    std::vector<NamedTensor> all;
    for (const Member& m : g_.members)
      if (m.role != Role::input) all.push_back({std::string(g_.path(m)), m.role, m.type});
    return all;
  }
  /// Writes this rank's part of one of them, or else of the output of this name, into a whole tensor, which has room
  /// for all of it: a vector, a std::span or a matrix. All ranks together fill it. Throws Misuse where there is none of
  /// this name, where an output is asked for before the first step, and where what is given does not fit.
  template <class A>
  void get(HandedName name, A&& whole) const {
    read_whole(name, to_be_written(numbers_of(whole)));
  }
  template <int is_given = 0>
  std::vector<float> get(std::string_view) const {
    static_assert(is_given > 0,
                  "parallel: get writes a whole tensor into memory of yours; write std::vector<float> up(16 * 64), "
                  "then get(\"up\", up)");
    return {};
  }
  /// The plan's value of one of these by its name. Throws Misuse where there is none, or an output is asked for before
  /// the first step.
  int called(std::string_view name) const {
    for (const Member& m : g_.members)
      if (m.role != Role::input && g_.path(m) == name) return m.value;
    for (const Output& o : g_.outputs)
      if (g_.text(o.name) == name) {
        check_begun(std::string(name));
        return o.value;
      }
    return find(name).value;  // which says what there is
  }
  /// f(tensor, member, bytes of this rank's part or null, how many) for each of them, when all before is done.
  template <class F>
  void each_part(F f) const {
    device_.finish();
    std::vector<std::byte> room;
    for (const Member& m : g_.members) {
      if (m.role == Role::input) continue;
      const NamedTensor named{std::string(g_.path(m)), m.role, m.type};
      View part{.data = has_part(plan_, m.value, rank_) ? position_.address(m.value) : nullptr,
                .dtype = m.type.dtype,
                .rank = 1};
      part.size[0] = local_elements(m.type.layout, plan_.mesh);
      if (!internals::on_host(m.type.layout)) part = on_host(part, room);
      f(named, m, static_cast<const std::byte*>(part.data), part.elements() * bytes_of(part.dtype));
    }
  }
  /// f(name, value) for each number, as the next step reads it.
  template <class F>
  void each_scalar(F f) {
    scalars_.each([&](std::string_view name, double) { f(name, scalar(name)); });
  }
  const Plan& plan() const { return plan_; }
  /// The same for what outlives this.
  const std::shared_ptr<const Plan>& kept_plan() const { return kept_; }
  int rank() const { return rank_; }
  /// The last step's updates were skipped on every rank, because the loss or the gradient norm was no finite number.
  bool skipped() const { return g_.commit >= 0 && read<double>(position_.address(g_.commit)) == 0; }

 protected:
  /// Throws CannotRun, and what the device throws where it has not enough memory for the plan's account.
  RankMemory(const Plan& plan, int rank, int size, ParametersIn<MemoryOf<Device>>& parameters, const Device& device,
             const RankMemory* before);
  RankMemory(const RankMemory&) = delete;
  RankMemory& operator=(const RankMemory&) = delete;

  const Member& find(std::string_view name) const {
    std::string known;
    for (const Member& m : g_.members) {
      if (m.role == Role::input) continue;
      if (g_.path(m) == name) return m;
      known += (known.empty() ? "; it has " : ", ") + std::string(g_.path(m));
    }
    std::string outputs;
    for (const Output& o : g_.outputs)
      outputs += (outputs.empty() ? "; outputs, which output() reads: " : ", ") + std::string(g_.text(o.name));
    throw Misuse("the program has no tensor " + std::string(name) + known + outputs);
  }
  /// `write` is given this rank's part of a member, where there is one, to write it. Returns what ranks compare of it.
  std::uint64_t change_part(const Member& m, const std::function<void(std::byte*)>& write);
  void read_whole(std::string_view name, const HandedOver& whole) const;
  /// The memory of what was remembered, for a program that goes on from there.
  std::byte* remembered(const Plan& next) const {
    check_alike(block_layout(plan_, Role::state), block_layout(next, Role::state),
                "two programs that are to remember together remember different tensors",
                "take the same model, room, mesh and schedule, and programs that only remember");
    return position_.blocks[static_cast<int>(MemoryBlock::state)];  // what is remembered lies on no host
  }
  std::byte*& block(MemoryBlock b) { return position_.blocks[static_cast<int>(b)]; }
  View view(int value) const { return position_.view(value); }
  /// A step can begin: every input is there, numbers are sent. Throws Misuse.
  void begin_step();

  const Scalars<Device>& scalars() const { return scalars_; }

  using Host = typename HostOf<Device>::type;

  const std::shared_ptr<const Plan> kept_;  // so that the plan outlives what runs it
  const Plan& plan_;
  const GraphView& g_;
  Position position_;
  /// The device with what the plan's kernels work in, where that is the host's.
  static Device ready(Device device, const Plan& plan) {
    if constexpr (requires(const account::Scratch& s) { device.make_ready(s); })
      device.make_ready(plan.scratch(Device::account));
    if constexpr (requires { device.keeps_packed(); })
      if (device.keeps_packed()) device.make_room(packed_weights(plan, Device::account));
    return device;
  }

  Device device_;
  Host host_;

 private:
  int position_of(std::string_view output) const {
    std::string known;
    for (int i = 0; i < outputs(); ++i) {
      const std::string_view name = g_.text(g_.outputs[static_cast<std::size_t>(i)].name);
      if (name == output) return i;
      known += (i == 0 ? "; they are " : ", ") + std::string(name);
    }
    throw Misuse("the program has no output " + std::string(output) + known);
  }
  template <class T>
  T read(const void* from) const {
    T result;
    device_.read(&result, from, sizeof result);
    return result;
  }
  struct Input {
    int member;
    Allowed allowed;
    bool given = false, in_place = false;
  };
  void put(int position, const HandedOver& given);
  static void check_position(const char* what, int i, int count) {
    if (i >= 0 && i < count) return;
    throw Misuse(
        "there is no " + std::string(what) + " " + std::to_string(i) +
        (count == 0 ? "; the program has none" : "; the program's are counted from 0 to " + std::to_string(count - 1)));
  }
  View output_part(int i) {
    check_position("output", i, outputs());
    return position_.part(g_.outputs[static_cast<std::size_t>(i)].value);
  }
  void check_begun(const std::string& asked) const {
    if (!has_begun_) throw Misuse(asked + " is asked for before the first step; run the program first");
  }
  Input& input_of(int position) {
    check_position("input", position, static_cast<int>(inputs_.size()));
    return inputs_[static_cast<std::size_t>(position)];
  }
  void check_given(int position, const Input& own) const {
    const Member& member = g_.member(own.member);
    if (!own.given)
      throw Misuse("input " + std::to_string(position) + ", " + text(member.type) + ", was never given; call input(" +
                   std::to_string(position) + ", ...) before run()");
    if (Device::asynchronous || !own.in_place || own.allowed.anything())
      return;  // the host sees what was written in its own memory only
    check_part(view(member.value), own, position);
  }
  /// Of a whole input: indices on every rank alike, of other numbers what this rank takes, as it need give no more.
  void check_handed_over(const HandedOver& given, const Type& type, const Input& own, int position) const {
    if (given.make != nullptr || own.allowed.anything()) return;
    const auto* const first = static_cast<const std::byte*>(given.data);
    const auto check = [&](std::int64_t, std::int64_t index, std::int64_t count) {
      check_allowed(first + index * bytes_of(given.dtype), given.dtype, static_cast<std::size_t>(count), own.allowed,
                    position, [&](std::size_t i) { return index + static_cast<std::int64_t>(i); });
    };
    if (given.dtype == DType::i32)
      check(0, 0, static_cast<std::int64_t>(given.size));
    else if (has_part(plan_, g_.member(own.member).value, rank_))
      each_run(plan_, type.layout, rank_, check);
  }
  /// Of a rank's part, which the host can read.
  static void check_part(const View& v, const Input& own, int position) {
    if (v.data == nullptr || own.allowed.anything()) return;
    const auto in_whole = [&](std::size_t i) {
      std::int64_t whole = 0, stride = 1, rest = static_cast<std::int64_t>(i);
      for (int d = v.rank - 1; d >= 0; --d) {
        whole += v.at(d, rest % v.size[d]) * stride;
        rest /= v.size[d];
        stride *= v.whole[d];
      }
      return whole;
    };
    check_allowed(v.data, v.dtype, static_cast<std::size_t>(v.elements()), own.allowed, position, in_whole);
  }
  /// Makes this rank's part run by run: by a callable, or out of a whole tensor whose elements stand in an order here.
  void make_part(const View& to, const Member& member, const HandedOver& given, const Input& own, int position) {
    View part = to;
    std::vector<std::byte> room;
    if (Device::asynchronous) {
      room.resize(static_cast<std::size_t>(to.elements() * bytes_of(to.dtype)));
      part.data = room.data();
    }
    write_part(plan_, member.type.layout, rank_, given, static_cast<std::byte*>(part.data));
    check_part(part, own, position);
    if (Device::asynchronous) device_.take(part, to);
  }

  int rank_;
  std::vector<MemoryOf<Device>> own_{};  // blocks
  std::vector<typename Host::Memory> own_on_host_{};
  Scalars<Device> scalars_{};
  bool has_begun_ = false;  // a step
  std::vector<Input> inputs_{};
};

template <Device Device>
void RankMemory<Device>::put(int position, const HandedOver& given) {
  Input& own = input_of(position);
  const Member& member = g_.member(own.member);
  check_whole(given, member.type, "input ", std::to_string(position));
  if (!given.together()) {  // once row by row: a device takes what lies so
    const std::vector<std::byte> rows = piecewise::row_by_row(given);
    HandedOver copy = given;
    copy.data = rows.data();
    copy.row_step = copy.columns;
    copy.column_step = 1;
    return put(position, copy);
  }
  check_handed_over(given, member.type, own, position);
  own.given = given.make == nullptr;
  own.in_place = false;
  const View to = view(member.value);
  const bool by_runs = given.make != nullptr || stands_in_order(member.type.layout, plan_.mesh);
  if (to.data != nullptr && by_runs) make_part(to, member, given, own, position);
  own.given = true;                           // not where what was made cannot be read by
  if (to.data == nullptr || by_runs) return;  // only other stages take it, or it is there
  View from = to;
  for (int d = 0; d < from.rank; ++d) {
    from.size[d] = from.whole[d];
    from.offset[d] = 0;
  }
  from.data = const_cast<void*>(given.data);
  device_.take(from, to);
}

template <Device Device>
std::uint64_t RankMemory<Device>::change_part(const Member& m, const std::function<void(std::byte*)>& write) {
  if (!has_part(plan_, m.value, rank_)) return hash_of_part(plan_, m, nullptr);
  std::byte* const part = position_.address(m.value);
  if (Device::asynchronous) device_.finish();
  if (!Device::asynchronous || internals::on_host(m.type.layout)) {
    write(part);
    return hash_of_part(plan_, m, part);
  }
  View to{.data = part, .dtype = m.type.dtype, .rank = 1};
  to.size[0] = to.whole[0] = local_elements(m.type.layout, plan_.mesh);
  std::vector<std::byte> room;  // what pads a part stays
  const View from = on_host(to, room);
  write(room.data());
  device_.take(from, to);
  device_.finish();  // so that Parameters, which may have another stream, get it
  return hash_of_part(plan_, m, room.data());
}

template <Device Device>
void RankMemory<Device>::read_whole(std::string_view name, const HandedOver& whole) const {
  const int value = called(name);
  const Type& type = g_.value(value).type;
  check_whole(whole, type, "the tensor ", name);
  if (!has_part(plan_, value, rank_)) return;
  View part{.data = position_.address(value), .dtype = type.dtype, .rank = 1};
  part.size[0] = local_elements(type.layout, plan_.mesh);
  std::vector<std::byte> room;
  if (internals::on_host(type.layout))
    device_.finish();
  else
    part = on_host(part, room);
  read_part(plan_, type.layout, rank_, static_cast<const std::byte*>(part.data), whole);
}

template <Device Device>
double RankMemory<Device>::output_scalar(int i) {
  const View v = output_part(i);
  if (v.data == nullptr || v.elements() != 1)
    throw Misuse("output " + std::to_string(i) + " is " +
                 text(g_.value(g_.outputs[static_cast<std::size_t>(i)].value).type) +
                 ", no single number on this rank; ask for output(" + std::to_string(i) + ")");
  check_begun("output_scalar");
  switch (v.dtype) {
    case DType::f64: return read<double>(v.data);
    case DType::bf16: return static_cast<double>(static_cast<float>(read<bfloat16>(v.data)));
    case DType::f16: return static_cast<double>(static_cast<float>(read<float16>(v.data)));
    case DType::i32: return static_cast<double>(read<int>(v.data));
    default: return static_cast<double>(read<float>(v.data));
  }
}

template <Device Device>
RankMemory<Device>::RankMemory(const Plan& plan, int rank, int size, ParametersIn<MemoryOf<Device>>& parameters,
                               const Device& device, const RankMemory* before)
    : kept_(kept(plan)),
      plan_(*kept_),
      g_(plan_.graph),
      position_(plan_, rank),
      device_(ready(device, plan)),
      host_(device_),
      rank_(rank) {
  check_ranks(plan, rank, size);
  block(MemoryBlock::parameter) = parameters.data(plan, rank);
  block(MemoryBlock::host_parameter) = parameters.data_on_host(plan, rank);
  const auto bytes = [&](MemoryBlock b) { return plan.memory.of(b); };
  const auto own = [&](MemoryBlock b) { block(b) = own_.emplace_back(device_.memory(bytes(b))).data(); };
  const std::int64_t state = before == nullptr ? bytes(MemoryBlock::state) : 0;
  if constexpr (requires { device.need(state); })
    device.need(state + bytes(MemoryBlock::input) + bytes(MemoryBlock::scalars) + bytes(MemoryBlock::arena));
  if (before == nullptr) own(MemoryBlock::state);
  if (before != nullptr) block(MemoryBlock::state) = before->remembered(plan);
  own(MemoryBlock::input);
  own(MemoryBlock::arena);
  for (const MemoryBlock b : {MemoryBlock::host_state, MemoryBlock::host_arena})
    block(b) = own_on_host_.emplace_back(Host::memory(device_, bytes(b))).data();
  scalars_ = Scalars<Device>(plan_, device_);
  block(MemoryBlock::scalars) = scalars_.data();
  for (std::size_t m = 0; m < g_.members.size(); ++m)
    if (g_.members[m].role == Role::input)
      inputs_.push_back(
          {static_cast<int>(m), allowed_in(g_, static_cast<int>(m)), view(g_.members[m].value).data == nullptr});
}

template <Device Device>
void RankMemory<Device>::begin_step() {
  for (std::size_t i = 0; i < inputs_.size(); ++i) check_given(static_cast<int>(i), inputs_[i]);
  scalars_.begin_step([&] { return skipped(); });
  has_begun_ = true;
}

}  // namespace parallel::internals

namespace parallel {
using internals::NamedNumber;
using internals::NamedTensor;
using internals::Role;
}  // namespace parallel
