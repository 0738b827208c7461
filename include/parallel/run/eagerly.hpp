// A program of which the model runs eagerly: its functions are called with numbers, so a debugger goes through them
// line by line, and `look` prints. What comes out are the bits of the program's plan.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include <parallel/run/carrying_out.hpp>
#include <parallel/run/handed_name.hpp>

namespace parallel::internals {

/// A program's forward pass on one rank, without updates: `Eagerly<Step, Threads, Cpu> eager(plan, world, parameters);`
/// and `eager(x, y).output_scalar("loss")` is the loss that a step on the same inputs has. Called by all ranks
/// together.
template <class Program, class World = void, class Device = void>
class Eagerly {
  using Model = typename Program::Model;

 public:
  /// `parameters`: as the program's plan has them. World and parameters must outlive it. Throws CannotRun where
  /// the program's layers lie on several stages.
  Eagerly(const Plan& plan, World& world, ParametersIn<MemoryOf<Device>>& parameters, const Device& device = {})
      : session_(plan.mesh, world, device) {
    static_assert(!building::refused<Program>());
    if (plan.graph.stages != nullptr && plan.mesh.extent(plan.graph.stages) > 1)
      throw CannotRun("no rank of " + text(plan.mesh) +
                      " has all layers, so none can run the model eagerly; take a mesh with one stage");
    session_.numbers = {{"seed", 0}, {"step", 1}};
    words(session_.declared);
    number_draws(typename Program::Inputs{});
    session_.declare_model(model_);
    session_.declared.graph.stages = nullptr;
    session_.take_parameters(parameters);
    first_input_ = session_.applications.all.size();
  }

  template <class... Given>
  requires(!run_of<World, ParametersIn<MemoryOf<Device>>, Given&&...>) explicit Eagerly(Given&&...)
      : Eagerly(nothing<const Plan>(), nothing<World>(), nothing<ParametersIn<MemoryOf<Device>>>()) {
    static_assert(
        wrong_world<World, Given...>(),
        "parallel: Eagerly is made of a plan, its communicator and parameters that can be written, each with a "
        "name of its own and no temporary; write const auto plan = derive<Step>(mesh), then "
        "Eagerly<Step, Threads, Cpu> eager(plan, world, parameters)");
  }

  /// Runs the model on these inputs, as an executor takes them.
  Eagerly& operator()(const HandedInput& first, const HandedInput& second = {}, const HandedInput& third = {},
                      const HandedInput& fourth = {}, const HandedInput& fifth = {}, const HandedInput& sixth = {},
                      const HandedInput& seventh = {}, const HandedInput& eighth = {}) {
    const HandedInput all[]{first, second, third, fourth, fifth, sixth, seventh, eighth};
    run(all, typename Program::Inputs{});
    return *this;
  }
  /// An output of one element; of a training `loss`.
  double output_scalar(HandedName name) {
    const eagerly::Held held = session_.whole(find(name));
    if (held.type->layout.elements() != 1)
      throw Misuse("the output " + std::string(name) + " is " + text(*held.type) +
                   ", no single number; ask for output<T>(name)");
    double number = 0;
    with_element(held.type->dtype, [&]<class T>(T) {
      if constexpr (Half<T>)
        number = static_cast<double>(static_cast<float>(*reinterpret_cast<const T*>(held.data)));
      else
        number = static_cast<double>(*reinterpret_cast<const T*>(held.data));
    });
    return number;
  }
  /// A whole output, on every rank.
  template <class T = float>
  std::vector<T> output(HandedName name = "result") {
    const eagerly::Held held = session_.whole(find(name));
    if (held.type->dtype != dtype_of<T>)
      throw Misuse("the output " + std::string(name) + " is " + text(*held.type) + "; ask for elements of its type");
    const T* const first = reinterpret_cast<const T*>(held.data);
    return {first, first + held.type->layout.elements()};
  }
  /// A number that operations read, `seed` and `step`. Throws Misuse for another, and for a number out of its range.
  void scalar(HandedName name, double value) { session_.number(name, value); }
  /// All numbers as the next step of an executor reads them.
  template <class Running>
  void scalars_of(Running& executor) {
    executor.each_scalar([this](std::string_view name, double value) { session_.numbers[std::string(name)] = value; });
  }

 private:
  using What = Application::What;
  static constexpr int micro_batches = Program::micro_batches;

  template <class F>
  static void with_element(DType dtype, F f) {
    switch (dtype) {
      case DType::f64: return f(double{});
      case DType::bf16: return f(bfloat16{});
      case DType::f16: return f(float16{});
      case DType::i32: return f(int{});
      default: return f(float{});
    }
  }
  static void words(Trace& trace) {
    trace.training = is_trained<Program>;
    if constexpr (requires { Program::sums; }) trace.sums = Program::sums;
    if constexpr (requires { Program::grouping; }) trace.grouping = Program::grouping;
    if constexpr (requires { Program::stored; })
      for (const StoredOn& s : Program::stored) trace.stored.push_back(s);
  }
  /// The numbers of random operations follow from the order in which a program is written, which is not that in which
  /// its model applies them: it is written once to know them.
  template <class... Input>
  void number_draws(Types<Input...>) {
    Trace trace;
    words(trace);
    Applications program;
    Model model{};
    Vector<char> path;
    declare(model, trace, program, path);
    const int first = program.all.size();
    int position = 0;
    ((program.note({.what = What::given, .value = building::declare_input<Input>(trace, position, 1)}), ++position),
     ...);
    const auto returned = [&]<int... i>(std::integer_sequence<int, i...>) {
      return model(building::Entering<Input>(&program, first + i)...);
    }
    (std::make_integer_sequence<int, sizeof...(Input)>{});
    List<int, meta::max_members> last;
    building::each_result(returned,
                          [&](const auto& tensor, std::string_view) { last.push_back(tensor.enter(program)); });
    session_.draws.resize(program.all.size(), -1);
    Writing(trace, program, &session_.draws).program(last);
    draws_any_ = trace.draws > 0;
  }
  template <class... Input>
  void run(std::span<const HandedInput> all, Types<Input...>) {
    std::size_t given = 0;
    while (given < all.size() && all[given].given) ++given;
    if (given != sizeof...(Input))
      throw Misuse("the program takes " + std::to_string(sizeof...(Input)) + " inputs, but " + std::to_string(given) +
                   " were given; give one for each, in the order of the program's types");
    if (micro_batches > 1 && draws_any_)
      throw CannotRun(
          "a program that draws random numbers in several micro-batches does not run eagerly; take one micro-batch");
    outputs_.clear();
    eagerly::Held total{};
    for (int batch = 0; batch < micro_batches; ++batch) {
      session_.back_to(first_input_);
      const auto returned = [&]<int... i>(std::integer_sequence<int, i...>) {
        (give<Input>(all[i], i, batch), ...);
        return model_(building::Entering<Input>(&session_.applications, first_input_ + i)...);
      }
      (std::make_integer_sequence<int, sizeof...(Input)>{});
      building::each_result(returned, [&](const auto& tensor, std::string_view name) {
        const int number = tensor.enter(session_.applications);
        outputs_.push_back({std::string(is_trained<Program> ? "loss" : name), number});
      });
      if constexpr (micro_batches > 1) total = mean(total, outputs_.back().number);
    }
    if constexpr (micro_batches > 1) outputs_ = {{"loss", session_.give(total)}};
  }
  template <class Input>
  void give(const HandedInput& whole, int position, int batch) {
    using Given = building::Entering<Input>;
    HandedOver part = whole;
    std::vector<std::byte> rows;
    if constexpr (micro_batches > 1) {
      check_whole(whole, {Given::type.dtype, with_leading(Given::type.layout, Dim(micro_batches))}, "input ",
                  std::to_string(position));
      const std::int64_t elements = Given::type.layout.elements(), before = batch * elements;
      const std::byte* first = static_cast<const std::byte*>(whole.data);
      if (whole.make != nullptr) {
        rows.resize(static_cast<std::size_t>(elements * bytes_of(whole.dtype)));
        whole.make(whole.data, before, elements, rows.data());
        first = rows.data();
      } else if (!whole.together()) {
        rows = piecewise::row_by_row(whole);
        first = rows.data();
      }
      if (whole.make == nullptr) first += before * bytes_of(whole.dtype);
      part = {whole.dtype, first, static_cast<std::size_t>(elements)};
    } else {
      check_whole(whole, Given::type, "input ", std::to_string(position));
    }
    session_.give(&Given::type, building::kind_of_input<Input>, part);
  }
  /// Adds a micro-batch's share of the loss, as a plan does.
  eagerly::Held mean(const eagerly::Held& total, int number) {
    const eagerly::Held loss = session_.operand(number);
    std::vector<eagerly::Held> in{loss};
    if (total.data != nullptr) in.push_back(total);
    return session_.run(
        {&operation::accumulate, loss.type, static_cast<double>(in.size())}, in, loss.type, Kind::data, {},
        [&](Trace& trace, std::span<const int> v, Vector<int>&) {
          const Type type = *loss.type;
          const int before = v.size() > 1 ? v[1] : trace.emit(operation::constant, {}, {type}, Kind::constant);
          const int share = trace.emit(operation::scale, {v[0]}, {type}, Kind::data, {}, 1.0 / micro_batches);
          return trace.emit(operation::accumulate, {before, share}, {type}, Kind::data);
        });
  }
  int find(std::string_view name) const {
    std::string known;
    for (const Output& o : outputs_) {
      if (o.name == name) return o.number;
      known += (known.empty() ? "; they are " : ", ") + o.name;
    }
    throw Misuse("the program has no output " + std::string(name) + (known.empty() ? "; run it first" : known));
  }

  struct Output {
    std::string name;
    int number;
  };
  eagerly::Session<World, Device> session_;
  Model model_{};
  int first_input_ = 0;
  bool draws_any_ = false;
  std::vector<Output> outputs_{};
};
template <class Program, class World, class On>
requires(!Runs<World, On> || !IsProgram<Program>) class Eagerly<Program, World, On>
    : public Misnamed<Eagerly<Program, World, On>> {
  using Misnamed<Eagerly<Program, World, On>>::Misnamed;
};

}  // namespace parallel::internals

namespace parallel {
using internals::Eagerly;
}  // namespace parallel
