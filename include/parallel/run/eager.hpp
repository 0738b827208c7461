// Tensors with numbers: what is applied to them is carried out at once, one operation behind the other, by the rule and
// the kernels of a plan. For looking into a model; a plan is faster.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <parallel/run/carrying_out.hpp>
#include <parallel/run/handed_name.hpp>
#include <parallel/run/made_of.hpp>

namespace parallel::internals {

/// The element type of a tensor.
template <Distributed X>
using element_t = typename ElementOf<X::type.dtype>::type;

/// The gradient of an X, completed.
template <Distributed X>
struct GradientOf {
  static constexpr Type type = [] {
    Type t = conjugate(X::type);
    AxisList axes;
    t.layout.collect(axes);
    for (const Axis* axis : axes)
      if (t.layout.on(axis) == Partial) t.layout = t.layout.with(axis, Invariant);
    return t;
  }();
  static constexpr Inference value = [] {
    Inference v;
    v.results.push_back(type);
    v.kind = Kind::data;
    return v;
  }();
};

/// A session of eager tensors on one rank. Its ranks apply the same to theirs, together.
///
///
///     Eager<Threads, Cpu> eager(Mesh{data = 2}, world);
///     const auto x = eager.tensor<float, Shape<4 / data>>(std::vector<float>{1, 2, 3, 4});
///     std::cout << eager.text(x + x);
template <class World = void, class Device = void>
class Eager {
 public:
  explicit Eager(const Mesh& mesh, World& world, const Device& device = {}) : session_(mesh, world, device) {
    session_.numbers = {{"seed", 0}, {"step", 1}};
  }
  template <class First, class... More>
  requires(!std::is_convertible_v<First, const Mesh&>) explicit Eager(First&&, More&&...)
      : Eager(nothing<const Mesh>(), nothing<World>()) {
    static_assert(sizeof...(More) > 99,
                  "parallel: an eager session is made of a mesh and its communicator; write Eager<Threads, Cpu> "
                  "eager(Mesh{data = 2}, world)");
  }

  /// This rank's part of a whole tensor, given to all ranks alike: data, as a program's inputs are.
  template <class T = void, class S = void, class... Annotation, class A>
  auto tensor(A&& whole) {
    return given<Kind::data, Tensor<T, S, Annotation...>>(numbers_of(whole));
  }
  template <class T = void, class S = void, class... Annotation, class N>
  auto tensor(std::initializer_list<N> whole) {
    return tensor<T, S, Annotation...>(listed<T>(whole));
  }
  template <class T = void, class S = void, class... Annotation, class Row>
  auto tensor(std::initializer_list<std::initializer_list<Row>>) {
    static_assert(sizeof(Row) > 99,
                  "parallel: an eager tensor is given its numbers one behind the other; write eager.tensor<float, "
                  "Shape<2, 2>>({1, 2, 3, 4})");
    return Traced<float, Kind::refused, Shape<>>{};
  }
  template <class... Said, class... Given>
  requires(sizeof...(Given) > 1) auto tensor(const Given&...) { return otherwise<sizeof...(Said), Given...>(); }
  /// The same of what a gradient can be asked.
  template <class T = void, class S = void, class... Annotation, class A>
  auto wanted(A&& whole) {
    static_assert(
        !std::is_integral_v<T>,
        "parallel: whole numbers have no gradient; give indices and targets by eager.tensor<int, Shape<8>>(y)");
    return given<Kind::activation, Tensor<T, S, Annotation...>>(numbers_of(whole));
  }
  template <class T = void, class S = void, class... Annotation, class N>
  auto wanted(std::initializer_list<N> whole) {
    return wanted<T, S, Annotation...>(listed<T>(whole));
  }
  template <class... Said, class... Given>
  requires(sizeof...(Given) > 1) auto wanted(const Given&...) { return otherwise<sizeof...(Said), Given...>(); }
  /// The whole tensor, on every rank: sums that are pending are completed. All ranks together.
  template <Distributed X>
  std::vector<element_t<X>> whole(const X& x, Here here = {}) {
    const eagerly::Held all = session_.whole(x.enter(session_.applications), here);
    const auto* const first = reinterpret_cast<const element_t<X>*>(all.data);
    return {first, first + all.bytes / bytes_of(X::type.dtype)};
  }
  /// What this rank has of it, as long as it is not forgotten.
  template <Distributed X>
  std::span<const element_t<X>> part(const X& x) {
    const eagerly::Held own = session_.operand(x.enter(session_.applications));
    if (!holds(X::type.layout, session_.plan().mesh, session_.world().rank())) return {};  // At other ranks
    return {reinterpret_cast<const element_t<X>*>(own.data),
            static_cast<std::size_t>(own.bytes / bytes_of(X::type.dtype))};
  }
  /// How it lies, and its numbers. All ranks together.
  template <Distributed X>
  std::string text(const X& x, Here here = {}) {
    return session_.text(x.enter(session_.applications), here);
  }
  /// A model whose parameters begin as `Parameters(plan, rank, seed)` has them. One in a session.
  template <class Model>
  requires(!IsProgram<Model>) Model model(std::uint64_t seed) {
    static_assert(accept<Model>());
    if (parameters_) throw Misuse("the session has a model already; put both into one struct");
    Model model{};
    session_.declare_model(model);
    plan_.emplace(session_.plan_of_parameters());
    parameters_.emplace(*plan_, session_.world().rank(), seed, session_.device());
    session_.take_parameters(*parameters_);
    session_.enter_parameters();
    return model;
  }
  template <class Model, class... Given>
  requires(IsProgram<Model> || sizeof...(Given) != 1) Model model(const Given&...) {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: an eager session takes a model, which is no program, and a seed; write eager.model<Net>(1)");
    return {};
  }
  /// Writes this rank's part of a whole parameter, by its path in the model: "blocks.*.up".
  template <class A>
  void set(HandedName path, A&& whole, Here here = {}) {
    static_cast<void>(session_.parameter(path));
    parameters_->set(*plan_, session_.world().rank(), path, whole, here);
    session_.enter_parameters();
  }
  /// The gradients of a scalar with respect to parameters, or to tensors that `wanted` made: a tensor, or a tuple of
  /// them. They are computed by one program, from what the scalar was made of. All ranks together. Throws Misuse where
  /// it was not made of one of them.
  template <Distributed Loss, Distributed... X>
  requires(sizeof...(X) > 0 && Loss::type.layout.rank() == 0) auto gradient(const Loss& loss, const X&... x) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      const std::array<int, sizeof...(X)> of{number_of(x)...};
      for (const int number : of)
        if (session_.layers(number) > 0)
          throw Misuse(
              "a parameter of layers has as many gradients; ask for all by its path, gradient(loss, \"blocks.*.up\")");
      const std::array<Type, sizeof...(X)> as{GradientOf<X>::type...};
      const auto held = back(loss, of, as);
      return parts(traced_t<GradientOf<X>>(
          &session_.applications,
          session_.give({&GradientOf<X>::type, Kind::data, held[i].own, held[i].data, held[i].bytes}))...);
    }
    (std::make_index_sequence<sizeof...(X)>{});
  }
  /// The same of a parameter by its path, whole: those of layers lie one behind the other.
  template <class T = float, Distributed Loss>
  std::vector<T> gradient(const Loss& loss, HandedName path) {
    const std::array<int, 1> of{session_.parameter(path)};
    const Application& a = session_.applications.all[of[0]];
    Layout layout = a.type->layout.unplaced();
    if (const int layers = session_.layers(of[0]); layers > 0) layout = with_leading(layout, Dim(layers));
    const std::array<Type, 1> as{Type{dtype_of<T>, layout}};
    const eagerly::Held whole = back(loss, of, as)[0];
    const T* const first = reinterpret_cast<const T*>(whole.data);
    return {first, first + layout.elements()};
  }
  template <Distributed Loss, class... Given>
  requires(sizeof...(Given) == 0 || (Loss::type.layout.rank() > 0 && (Distributed<Given> && ...)) ||
           !((Distributed<Given> || std::is_convertible_v<const Given&, std::string_view>)&&...)) Loss
      gradient(const Loss& loss, const Given&...) {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: a gradient is of a loss, a scalar, with respect to something; write eager.gradient(loss, w), with "
        "what wanted(...) made or a parameter, or its path");
    return loss;
  }
  template <class Loss, class... Given>
  requires(!Distributed<Loss>) auto gradient(const Loss&, const Given&...) {
    static_assert(sizeof...(Given) > 99,
                  "parallel: a gradient is of a loss as eager operations gave it, neither of a function nor of its "
                  "number; write const auto loss = f(w), then eager.gradient(loss, w)");
    return Traced<float, Kind::refused, Shape<>>{};
  }
  /// A number that operations read: `seed` and `step` of dropout and `random`, those of `sample`. Throws Misuse for
  /// another, and for a number out of its range.
  void scalar(HandedName name, double value) { session_.number(name, value); }
  /// Frees the memory of all tensors; parameters stay.
  void forget() { session_.forget(); }

 private:
  template <Distributed X>
  int number_of(const X& x) {
    return x.enter(session_.applications);
  }
  template <class One>
  static One parts(const One& one) {
    return one;
  }
  template <class One, class... More>
  requires(sizeof...(More) > 0) static auto parts(const One& one, const More&... more) {
    return std::tuple(one, more...);
  }
  template <Distributed Loss>
  std::vector<eagerly::Held> back(const Loss& loss, std::span<const int> of, std::span<const Type> as) {
    constexpr Refusal refusal = building::refused_loss(Loss::type);
    using accepted [[maybe_unused]] = typename Refused<refusal.reason, refusal.axis, refusal.figures[0]>::type;
    return session_.gradients(number_of(loss), of, as, {});
  }
  /// A list in braces, as numbers of the tensor's type.
  template <class T, class N>
  static auto listed(std::initializer_list<N> whole) {
    return std::vector<std::conditional_t<is_element_type<T>, T, N>>(whole.begin(), whole.end());
  }
  /// What `tensor` and `wanted` are given otherwise; `said`: how much stands in <>.
  template <std::size_t said, class... Given>
  static auto otherwise() {
    static_assert(said > 1 || sizeof...(Given) > 99,
                  "parallel: an eager tensor has its element type and Shape in <>; write eager.tensor<float, "
                  "Shape<2>>({1, 2})");
    static_assert(said < 2 || sizeof...(Given) > 99,
                  "parallel: an eager tensor is given all its numbers as one; write eager.tensor<float, "
                  "Shape<2>>({1, 2}), or a vector");
    return Traced<float, Kind::refused, Shape<>>{};
  }
  template <Kind kind, class X>
  auto given(const HandedOver& whole) {
    if constexpr (std::is_same_v<X, Tensor<void, void>>) {
      return otherwise<0, X>();
    } else if constexpr (accept_annotations<X>()) {
      using Given = typename Symbolic<X, kind>::type;
      return Given(&session_.applications, session_.give(&Given::type, kind, whole));
    } else {
      return Traced<float, Kind::refused, Shape<>>{};
    }
  }

  eagerly::Session<World, Device> session_;
  std::optional<OwnedPlan> plan_{};
  std::optional<ParametersIn<MemoryOf<Device>>> parameters_{};
};
template <class World, class On>
requires(!Runs<World, On>) class Eager<World, On> : public Misnamed<Eager<World, On>> {
  using Misnamed<Eager<World, On>>::Misnamed;
};

}  // namespace parallel::internals

namespace parallel {
using internals::Eager;
}  // namespace parallel
