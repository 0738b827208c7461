// Carries out at once, on a rank's numbers, what is applied. Each operation with its moves is a program of its own,
// traced, planned and run as any other, and kept for the next time that it is applied to the same types.
#pragma once
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <parallel/run/kept_applications.hpp>
#include <parallel/run/small_program.hpp>
#include <parallel/run/tape_gradient.hpp>
#include <parallel/run/tensor_text.hpp>

namespace parallel::internals::eagerly {

/// What has been applied so far, with its numbers on one rank.
template <Communicator World, Device Device>
class Session : public CarryingOut {
  static_assert(!Device::asynchronous, "parallel: what runs eagerly is computed by the CPU; give Cpu, or a CpuOf");

 public:
  using Program = Small<World, Device>;

  Session(const Mesh& mesh, World& world, const Device& device)
      : mesh_(mesh),
        world_(world),
        device_(device),
        naming_(naming(mesh)),
        plan_(derive(naming_, mesh, {}, Demands{})) {
    if constexpr (requires { world.lifetime(); }) world_lives_ = world.lifetime();
    check_ranks(plan_, world.rank(), world.size());
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Sets a number of the run. Throws Misuse for one that no operation reads, or that is out of its range.
  void number(std::string_view name, double value) {
    std::string known;
    bool reads = false;
    each_hyperparameter(ScalarsOfOperations{}, [&](std::string_view of, double) {
      known += (known.empty() ? "" : ", ") + std::string(of);
      reads = reads || of == name;
    });
    if (!reads) throw Misuse("no operation reads a number '" + std::string(name) + "'; operations read " + known);
    check_number(name, value);
    numbers[std::string(name)] = value;
  }
  /// A value from outside: its number.
  int give(const Held& held) {
    const int number = applications.note({.what = Application::What::given, .kind = held.kind});
    resize();
    held_[static_cast<std::size_t>(number)] = held;
    return number;
  }
  /// A rank's part of a whole tensor.
  int give(const Type* type, Kind kind, const HandedOver& whole) {
    check_world();
    check_whole(whole, *type, "the tensor", "");
    const Held held = room_for(type, kind, mesh_);
    check_divides(*type);
    write_part(plan(), type->layout, world_.rank(), whole, held.own.get());
    return give(held);
  }
  /// Declares a model's parameters.
  template <class Model>
  void declare_model(Model& model) {
    Vector<char> path;
    declare(model, declared, applications, path);
    resize();
  }
  /// A plan of nothing but them.
  OwnedPlan plan_of_parameters() const {
    const GraphView beside(naming_);
    return derive(Graph(declared.graph), mesh_, std::span(&beside, 1), Demands{});
  }
  /// They have their numbers from these from now on.
  void take_parameters(ParametersIn<MemoryOf<Device>>& parameters) {
    Trace trace = declared;
    for (int i = 0; i < applications.all.size(); ++i) {
      const Application& a = applications.all[i];
      if (a.what != Application::What::given || a.type == nullptr) continue;
      const Layout& layout = a.type->layout;
      const int layers = trace.graph.members[trace.graph.values[a.value].member].layers;
      const Type* const whole =
          a.stacked ? derived(a.type, {a.type->dtype, with_leading(layout, Dim(layers))}) : a.type;
      trace.output(trace.graph.name({}, {"p"}), trace.enter(trace.cast(a.value, a.type->dtype), whole->layout));
      entered_.push_back({i, whole});
    }
    parameters_ = &parameters;
    entering_ = made(std::move(trace.graph), parameters_, {});
  }
  /// Parameters enter as they are now.
  void enter_parameters() {
    if (entering_ == nullptr) return;
    entering_->run({}, numbers, {});
    for (std::size_t o = 0; o < entered_.size(); ++o) {
      const View v = entering_->output(static_cast<int>(o));
      held_[static_cast<std::size_t>(entered_[o].number)] = {entered_[o].type,
                                                             Kind::parameter,
                                                             {},
                                                             static_cast<const std::byte*>(v.data),
                                                             static_cast<std::int64_t>(v.bytes())};
    }
  }
  /// Goes back from a scalar, and gives the gradients of tensors and parameters, in these types: one program of all
  /// that the scalar was made of.
  std::vector<Held> gradients(int loss, std::span<const int> of, std::span<const Type> as, Here here) {
    static_cast<void>(operand(loss));
    TapeGradient tape = tape_gradient(declared, applications, draws, held_, loss, of, as);
    const auto program = made(std::move(tape.graph), parameters_, here);
    program->run(tape.inputs, numbers, here);
    std::vector<Held> results;
    for (std::size_t i = 0; i < of.size(); ++i) {
      const View v = program->output(static_cast<int>(i));
      results.push_back(room_for(derived(&scalar_, as[i]), Kind::data, mesh_));
      if (v.data != nullptr)
        std::memcpy(results.back().own.get(), v.data, static_cast<std::size_t>(results.back().bytes));
    }
    return results;
  }
  /// How many layers share an application, a parameter; 0: it is no layers'.
  int layers(int number) const {
    const Application& a = applications.all[number];
    return a.stacked ? declared.graph.members[declared.graph.values[a.value].member].layers : 0;
  }
  /// The parameter of a path.
  int parameter(std::string_view path) const {
    std::string known;
    for (int i = 0; i < applications.all.size(); ++i) {
      const Application& a = applications.all[i];
      if (a.what != Application::What::given || a.type == nullptr) continue;
      const std::string_view name =
          declared.graph.text(declared.graph.members[declared.graph.values[a.value].member].path);
      if (name == path) return i;
      known += (known.empty() ? "; it has " : ", ") + std::string(name);
    }
    throw Misuse("the model has no parameter " + std::string(path) + known);
  }
  /// Forgets all that was applied from a number on.
  void back_to(int number) {
    applications.all.resize(number);
    held_.resize(static_cast<std::size_t>(number));
    loop_ = {};
    applications.loop = -1;
    enter_parameters();
  }
  /// Frees the memory of all but parameters.
  void forget() {
    for (Held& h : held_) h = {};
    loop_ = {};
    applications.loop = -1;
    enter_parameters();
  }

  int applied(const Application& a) override {
    check_world();
    const int number = noted(a);
    Held result = carried_out(a, number);
    held_[static_cast<std::size_t>(number)] = std::move(result);
    return number;
  }
  void begin_loop(int initial, int carried, const Type& type, int count) override {
    loop_ = Loop{.carried = carried, .count = count, .next = applications.all.size(), .type = &type};
    loop_.first = loop_.next;
    Held held = operand(initial);
    held.kind = Kind::activation;
    held_[static_cast<std::size_t>(carried)] = held;
  }
  bool goes_on(const Returned& returned) override {
    const Held state = moved(operand(returned.state), loop_.type);
    if (returned.given >= 0) loop_.given.push_back(returned.given == returned.state ? state : operand(returned.given));
    held_[static_cast<std::size_t>(loop_.carried)] = state;
    loop_.next = loop_.first;
    return ++loop_.iteration < loop_.count;
  }
  void look(int number, std::string_view name) override {
    const std::string all = text(number);
    if (world_.rank() != 0) return;
    std::string called(name);
    if (loop_.running()) called += "[" + std::to_string(loop_.iteration) + "]";
    std::printf("%s%s%s\n", called.c_str(), called.empty() ? "" : " = ", all.c_str());
    std::fflush(stdout);
  }
  void show(int number) override {
    const Held held = operand(number);
    std::vector<std::int64_t> extents;
    for (const Dim& d : held.type->layout.dims) extents.push_back(local(d, mesh_));
    std::fprintf(stderr, "rank %d of %s has of %s\n%s\n", world_.rank(), parallel::text(mesh_).c_str(),
                 parallel::text(*held.type).c_str(), text_of_numbers(held.type->dtype, held.data, extents).c_str());
  }

  /// The whole tensor, on every rank.
  Held whole(int number, Here here = {}) {
    const Held held = operand(number);
    Type all{held.type->dtype, held.type->layout.unplaced()};
    AxisList axes;
    held.type->layout.collect(axes);
    const auto write = [&](Trace& trace, int value) {
      value = building::summed(trace, value);
      Layout layout = trace.graph.values[value].type.layout;
      for (const Axis* axis : axes)
        if (layout.on(axis).apart()) layout = layout.with(axis, Invariant);
      for (Dim& d : layout.dims) d = d.standing_as(Dim());
      return trace.enter(value, layout);
    };
    return run(Key{&whole_, held.type}, std::span(&held, 1), derived(held.type, all), held.kind, here,
               [&](Trace& trace, std::span<const int> in, Vector<int>&) { return write(trace, in[0]); });
  }
  std::string text(int number, Here here = {}) {
    const Held all = whole(number, here);
    std::vector<std::int64_t> extents;
    for (const Dim& d : all.type->layout.dims) extents.push_back(d.size);
    return parallel::text(*operand(number).type) + " on " + parallel::text(mesh_) + "\n" +
           text_of_numbers(all.type->dtype, all.data, extents);
  }

  /// The numbers of an application, as an operation takes it now.
  Held operand(int number) const {
    if (number < 0 || number >= static_cast<int>(held_.size())) refuse_stray();
    const Held& held = held_[static_cast<std::size_t>(number)];
    if (held.data == nullptr)
      throw Misuse("a tensor is used whose numbers were forgotten, or of a loop that has ended; make it anew");
    if (const Application& a = applications.all[number]; a.stacked && loop_.running()) {  // this layer's of a parameter
      Held layer{a.type, held.kind, held.own, held.data, held.bytes / loop_.count};
      layer.data += layer.bytes * loop_.iteration;
      return layer;
    }
    return held;
  }
  /// Of a program that only names the axes of the mesh.
  const Plan& plan() const { return plan_; }

  KeptApplications kept{this};
  Applications& applications = *kept;
  Trace declared{};     ///< the parameters, and what words say of a program
  Vector<int> draws{};  ///< of each application, the number of its first random operation; -1: of none
  int drawn = 0;        ///< the next such number
  std::map<std::string, double, std::less<>> numbers{};  ///< of the run: seed, step

  /// Runs what `write` writes of these inputs, and keeps the program by its key. The result has this type and kind.
  struct Key {
    const void* what = nullptr;
    const void* types = nullptr;
    double first = 0, second = 0;
    int draw = -1, iteration = 0;
    friend bool operator<(const Key& a, const Key& b) {
      return std::tie(a.types, a.what, a.first, a.second, a.draw, a.iteration) <
             std::tie(b.types, b.what, b.first, b.second, b.draw, b.iteration);
    }
  };
  template <class Write>
  Held run(Key key, std::span<const Held> inputs, const Type* type, Kind kind, Here here, Write write,
           int number = -1) {
    Program* program = &small(key, inputs, here, write);
    if (program->draws > 0) {  // its numbers are of this application, and this iteration
      int& draw = draws[number];
      if (draw < 0) {
        draw = drawn;
        drawn += program->draws;
      }
      key.draw = draw;
      key.iteration = loop_.running() ? loop_.iteration : 0;
      program = &small(key, inputs, here, write);
    }
    program->run(inputs, numbers, here);
    const View v = program->output(0);
    Held result = room_for(type, kind, mesh_);
    if (v.data != nullptr) std::memcpy(result.own.get(), v.data, static_cast<std::size_t>(result.bytes));
    return result;
  }
  World& world() { return world_; }
  const Device& device() const { return device_; }

  /// A type that outlives the session's values, made from another that does.
  const Type* derived(const Type* from, const Type& type) {
    std::vector<std::unique_ptr<Type>>& all = types_[from];
    for (const auto& known : all)
      if (*known == type) return known.get();
    return all.emplace_back(std::make_unique<Type>(type)).get();
  }

 private:
  struct Loop {
    int carried = -1, count = 0, iteration = 0;
    int first = 0, next = 0;  ///< of the body's applications
    const Type* type = nullptr;
    std::vector<Held> given{};
    bool running() const { return iteration < count; }
  };
  struct Entered {
    int number = 0;
    const Type* type = nullptr;
  };

  [[noreturn]] static void refuse_stray() {
    throw Misuse(
        "a tensor is used that is not of this session: of another one, or a parameter of a model that it did not make; "
        "make tensors and models with the session that they meet in");
  }
  void resize() {
    held_.resize(static_cast<std::size_t>(applications.all.size()));
    if (draws.size() < applications.all.size()) draws.resize(applications.all.size(), -1);
  }
  /// In the first iteration of a loop its body is noted, in the others it is gone through again.
  int noted(const Application& a) {
    if (!loop_.running() || loop_.iteration == 0 || applications.loop != loop_.carried) {
      const int number = applications.note(a);
      resize();
      return number;
    }
    const int number = loop_.next++;
    if (number >= applications.all.size() || applications.all[number].what != a.what ||
        applications.all[number].operation != a.operation)
      throw CannotRun(
          "the iterations of a loop apply different operations; a model's functions must do the same whenever they "
          "are called");
    return number;
  }

  Held carried_out(const Application& a, int number) {
    using What = Application::What;
    switch (a.what) {
      case What::stray: refuse_stray();
      case What::operation:
        if (a.operation->remembers)
          throw CannotRun("what is remembered from run to run is not there eagerly; run the program as it is");
        return apply(a, number, a.inferred, &a.inferred->results[0], a.inferred->kind);
      case What::move: return apply(a, number, a.type, a.type, operand(a.operands[0]).kind);
      case What::source: return apply(a, number, a.type, a.type, a.kind);
      case What::beside:
      case What::sequence: return operand(a.operands[0]);
      case What::step: return slice(operand(a.operands[0]));
      case What::loop: return held_[static_cast<std::size_t>(loop_.carried)];
      case What::each: return stacked();
      default: return {};
    }
  }
  /// One application alone: what it takes are inputs.
  Held apply(const Application& a, int number, const void* types, const Type* type, Kind kind) {
    Application alone = a;
    std::vector<Held> operands;
    for (int& o : alone.operands) {
      operands.push_back(operand(o));
      o = static_cast<int>(operands.size()) - 1;
    }
    const auto write = [&](Trace& trace, std::span<const int> inputs, Vector<int>& from) {
      Applications one;
      for (const int i : inputs) one.note({.what = Application::What::given, .value = i});
      one.note(alone);
      Writing writing(trace, one, &from);
      return writing.program(List<int, 1>{one.all.size() - 1})[0];
    };
    return run(Key{a.operation, types, a.first, a.second}, operands, type, kind, here_of(a.where), write, number);
  }
  Held moved(const Held& held, const Type* to) {
    if (held.type->layout == to->layout) return held;
    return run(Key{to, held.type}, std::span(&held, 1), to, Kind::activation, {},
               [&](Trace& trace, std::span<const int> in, Vector<int>&) { return trace.enter(in[0], to->layout); });
  }
  Held slice(const Held& sequence) {
    Held step = sequence;
    step.type = derived(sequence.type, {sequence.type->dtype, without_leading(sequence.type->layout)});
    step.bytes /= loop_.count;
    step.data += step.bytes * loop_.iteration;
    return step;
  }
  Held stacked() {
    const Held& one = loop_.given[0];
    Held all = room_for(derived(one.type, {one.type->dtype, with_leading(one.type->layout, Dim(loop_.count))}),
                        Kind::activation, mesh_);
    for (std::size_t i = 0; i < loop_.given.size(); ++i)
      std::memcpy(all.own.get() + static_cast<std::int64_t>(i) * one.bytes, loop_.given[i].data,
                  static_cast<std::size_t>(one.bytes));
    return all;
  }
  static Here here_of(const Source& where) { return {where.file, where.line}; }

  std::unique_ptr<Program> made(Graph graph, ParametersIn<MemoryOf<Device>>* parameters, Here here) {
    return std::make_unique<Program>(std::move(graph), GraphView(naming_), mesh_, world_, parameters, device_, here);
  }
  template <class Write>
  Program& small(const Key& key, std::span<const Held> inputs, Here here, Write write) {
    std::unique_ptr<Program>& known = small_[key];
    if (known != nullptr) return *known;
    Trace trace;
    trace.training = declared.training;
    trace.sums = declared.sums;
    std::vector<int> values;
    for (const Held& input : inputs) values.push_back(declare_held(trace, input, false));
    trace.block = key.iteration;
    Vector<int> from;
    from.resize(static_cast<int>(inputs.size()) + 1, -1);
    from.back() = key.draw;
    const int result = write(trace, values, from);
    const int draws_here = trace.draws - (key.draw < 0 ? 0 : key.draw);
    trace.output(trace.graph.name({}, {"result"}), result);
    known = made(std::move(trace.graph), nullptr, here);
    known->draws = draws_here;
    return *known;
  }
  void check_divides(const Type& type) const {
    Trace trace;
    Held held{&type};
    declare_held(trace, held, false);
    const GraphView beside(naming_);
    static_cast<void>(derive(std::move(trace.graph), mesh_, std::span(&beside, 1), Demands{}));
  }

  void check_world() const {
    if constexpr (requires { world_.lifetime(); })
      if (world_lives_.expired())
        throw Misuse(
            "an eager session is used whose communicator is there no more; make it within run_threads(...) or "
            "run_mpi(...), and use it there");
  }

  static constexpr Type scalar_{};
  static constexpr char whole_ = 0;  // its address is a key

  Mesh mesh_;
  World& world_;
  std::weak_ptr<std::atomic<bool>> world_lives_{};
  Device device_;
  Graph naming_;
  OwnedPlan plan_;
  std::vector<Held> held_{};
  Loop loop_{};
  std::map<Key, std::unique_ptr<Program>> small_{};
  std::map<const Type*, std::vector<std::unique_ptr<Type>>> types_{};
  ParametersIn<MemoryOf<Device>>* parameters_ = nullptr;
  std::unique_ptr<Program> entering_{};
  std::vector<Entered> entered_{};
};

}  // namespace parallel::internals::eagerly
