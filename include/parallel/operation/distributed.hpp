// What a user writes and passes around: Tensor, Parameter, and the symbolic values that a program is traced with.
#pragma once
#include <type_traits>
#include <utility>

#include <parallel/graph/applications.hpp>
#include <parallel/graph/storing.hpp>
#include <parallel/graph/trace.hpp>

namespace parallel {

namespace internals {
namespace spelling {
/// The one of some words that is an Asked, or `otherwise`.
template <class Asked, class... Word>
constexpr Asked said(Asked otherwise, Word... words) {
  [[maybe_unused]] const auto hear = [&](auto word) {
    if constexpr (std::is_same_v<decltype(word), Asked>) otherwise = word;
  };
  (hear(words), ...);
  return otherwise;
}
template <class Asked, class... Word>
inline constexpr int times_said = (0 + ... + (std::is_same_v<std::remove_cvref_t<Word>, Asked> ? 1 : 0));
/// Whether these are words of a Stored, each kind at most once; what is whole at rest is never gathered, and on the
/// host there is one placement.
template <class... Word>
constexpr bool fit(const Axis& on, Zero stage) {
  constexpr int placements = times_said<Placement, Word...>, stages = times_said<Zero, Word...>,
                lives = times_said<Gathered, Word...>;
  return placements <= (&on == &axes::host ? 0 : 1) && stages <= 1 && lives <= (stage == Zero::parameters ? 1 : 0) &&
         placements + stages + lives == static_cast<int>(sizeof...(Word));
}
}  // namespace spelling
}  // namespace internals

/// How a parameter lies at rest, apart from how it enters an operation (`On`), and with it its optimizer's states and
/// its gradient: split over the ranks of an axis. `Stored<data>` splits the flat view, which nothing need divide;
/// `Stored<data, Split<0>>` a dimension. What is split, and how long the whole is kept once it is gathered, are further
/// words: `Stored<data, Zero::states>`, `Stored<data, Gathered::per_pass>`. `Stored<host>` is no split: what a rank has
/// then lies in the memory of its host, which updates it, and is fetched where it is used (ZeRO-Offload, Ren et al.,
/// 2021; ZeRO-Infinity, Rajbhandari et al., 2021).
template <const Axis& on, auto... word>
struct Stored {
  static constexpr const Axis* axis = &on;
  static constexpr Placement placement =
      internals::spelling::said(Placement(&on == &axes::host ? internals::OnHost : internals::SplitFlat), word...);
  static constexpr Zero stage = internals::spelling::said(Zero::parameters, word...);
  static constexpr Gathered gathered = internals::spelling::said(Gathered::per_use, word...);
  static constexpr internals::StoredOn value{axis, placement, stage, gathered,
                                             internals::spelling::fit<decltype(word)...>(on, stage)};
};

namespace internals {
namespace spelling {
template <class S>
constexpr Layout layout_of_shape() {
  Layout layout;
  for (int d = 0; d < S::rank; ++d) layout.dims.push_back(S::dims[d]);
  return layout;
}
template <class Annotation>
inline constexpr bool is_stored = false;
template <const Axis& on, auto... word>
inline constexpr bool is_stored<Stored<on, word...>> = true;
template <class S>
inline constexpr bool is_shape = false;
template <Dim... dims>
inline constexpr bool is_shape<Shape<dims...>> = true;
template <class Annotation>
inline constexpr bool is_annotation = requires {
  Annotation::axis, Annotation::placement;
};

template <class T, class S, class... Annotation>
constexpr Type type_of() {
  Layout layout = layout_of_shape<S>();
  ((is_stored<Annotation> ? void() : void(layout = layout.with(Annotation::axis, Annotation::placement))), ...);
  if constexpr (is_element_type<T>)
    return {dtype_of<T>, layout};
  else
    return {DType::f32, layout};  // which is refused
}
/// Between steps a parameter is the same on every rank that holds it: Broadcast says how it enters, not how it rests.
template <class Annotation>
constexpr void store(Storing& s) {
  if constexpr (is_stored<Annotation>) Annotation::value.of(s);
}
template <class T, class S, class... Annotation>
constexpr Storing storing_of() {
  Storing s;
  s.whole = type_of<T, S, Annotation...>().layout;
  for (const Placed& p : type_of<T, S, Annotation...>().layout.others)
    if (p.placement == Broadcast) s.whole = s.whole.with(p.axis, Invariant);
  s.split = s.whole;
  (store<Annotation>(s), ...);
  return s;
}
/// Why a shape and annotations of a tensor with `rank` dimensions are refused: an axis is named twice, or a dimension
/// does not exist.
template <class S, class... Annotation>
constexpr Refusal refused_annotation(int rank = S::rank) {
  if (S::rank > max_rank) return {Reason::wrong_rank, {S::rank, max_rank}};
  for (int d = 0; d < S::rank; ++d)
    if (S::dims[d].size < 1)
      return {Reason::bad_dimension, {S::dims[d].size}};
    else if (const Dim& dim = S::dims[d]; dim.ordered() && dim.axes[0] != dim.ordered_for)
      return {Reason::order_within, {dim.size}, dim.ordered_for};
  List<const Axis*, max_rank * max_nesting + sizeof...(Annotation)> named;
  for (int d = 0; d < S::rank; ++d)
    for (const Axis* axis : S::dims[d]) named.push_back(axis);
  ((is_stored<Annotation> ? void() : named.push_back(Annotation::axis)), ...);
  for (const Axis* axis : named) {
    if (axis == &axes::host) return {Reason::host_is_memory, {1}, axis};
    int times = 0;
    for (const Axis* other : named) times += other == axis ? 1 : 0;
    if (times > 1) return {Reason::axis_twice, {times}, axis};
  }
  // a flat view has no dimension; it is a word of Stored alone, where no dimension is split over the axis
  const Axis* flat = nullptr;
  bool unsaid = false;
  ((!Annotation::placement.flat                         ? void()
    : !is_stored<Annotation>                            ? void(unsaid = true)
    : layout_of_shape<S>().on(Annotation::axis).split() ? void(flat = Annotation::axis)
                                                        : void()),
   ...);
  if (unsaid) return {Reason::no_such_dimension, {-1, rank}};
  if (flat != nullptr) return {Reason::axis_twice, {2}, flat};
  for (const Placement& p : List<Placement, sizeof...(Annotation) + 1>{Annotation::placement...})
    if (p.split() && (p.dim < 0 || p.dim >= rank)) return {Reason::no_such_dimension, {p.dim, rank}};
  return {};
}
/// Whether what is Stored of one parameter fits together.
template <class... Annotation>
constexpr bool stored_alike() {
  List<StoredOn, sizeof...(Annotation) + 1> all;
  [[maybe_unused]] const auto hear = [&]<class A>(const A*) {
    if constexpr (is_stored<A>) all.push_back(A::value);
  };
  (hear(static_cast<const Annotation*>(nullptr)), ...);
  for (int i = 0; i < all.size(); ++i) {
    if (!all[i].fits || !all[i].alike(all[0].stage, all[0].gathered)) return false;
    for (int j = 0; j < i; ++j)
      if (all[j].axis == all[i].axis) return false;
  }
  return true;
}
/// The same for what a program is given: nobody gives it a pending sum.
template <class T, class S, class... Annotation>
constexpr Refusal refused_given() {
  if constexpr (!is_shape<S> || !(is_annotation<Annotation> && ...)) {
    return {Reason::no_shape, {sizeof...(Annotation)}};
  } else if constexpr (!is_element_type<T>) {
    return {Reason::no_element_type, {sizeof(T)}};
  } else {
    Refusal refusal;
    ((Annotation::placement.pending() ? void(refusal = {Reason::given_pending, {S::rank}, Annotation::axis}) : void()),
     ...);
    ((is_stored<Annotation> && Annotation::placement == Broadcast
          ? void(refusal = {Reason::stored_broadcast, {S::rank}, Annotation::axis})
          : void()),
     ...);
    if (!stored_alike<Annotation...>()) refusal = {Reason::stored_words, {S::rank}};
    return refusal ? refusal : refused_annotation<S, Annotation...>();
  }
}
}  // namespace spelling

template <class X>
struct Arithmetic;  ///< the operators, in operators.hpp
}  // namespace internals

/// Anything that an operation takes: its placement is known from its type.
template <class X>
concept Distributed = std::is_class_v<X> && requires(const X& x, internals::Applications& program) {
  X::type.layout;
  X::kind;
  {x.program()};
  {x.enter(program)};
};

namespace internals {
/// What a mistake about an X gives: asking is the one error, and nothing that is made of the answer is another.
template <Reason reason, Distributed X, int figure = X::type.layout.rank()>
constexpr auto mistaken();
}  // namespace internals

template <class T, class S = void, class... Annotation>
struct Tensor;

namespace internals {
template <class T, class S, class... Annotation>
void tensor_of(const Tensor<T, S, Annotation...>*);
/// A Tensor of an interface, or what is one.
template <class X>
concept Interface = requires(X* x) {
  tensor_of(x);
};
}  // namespace internals

/// A tensor of a program's interface: `Tensor<float, Shape<4096 / data, 768>>`, printed `f32[4096/data, 768]`.
/// `Shape<768, 3072 / tensor>` and `Shape<768, 3072>, On<tensor, Split<1>>` say the same.
template <class T, class S, class... Annotation>
struct Tensor : internals::Arithmetic<Tensor<T, S, Annotation...>> {
  static constexpr Type type = internals::spelling::type_of<T, S, Annotation...>();
  static constexpr Refusal refusal = (internals::spelling::is_stored<Annotation> || ...)
                                         ? Refusal{Reason::stored_input, {sizeof...(Annotation)}}
                                         : internals::spelling::refused_given<T, S, Annotation...>();

  // As a parameter of an operator() it is a mistake. Operations take it as what has been refused, and what is called
  // with a value refuses here.
  static constexpr Kind kind = Kind::refused;
  constexpr Tensor() = default;
  template <Distributed X>
  requires(!internals::Interface<X>) constexpr Tensor(const X&,
                                                      Kind = internals::mistaken<Reason::concrete, X>().kind) {}
  /// Of numbers: refused.
  template <class... Given>
  requires(... || (std::is_arithmetic_v<Given> || std::is_pointer_v<Given> ||
                   requires { typename Given::value_type; })) constexpr Tensor(const Given&...) {
    static_assert(
        sizeof...(Given) > 99,
        "parallel: a Tensor is the type of an input and holds no numbers; hand a vector or a span to what runs, "
        "step(x, y), or make an eager tensor, eager.tensor<float, Shape<2>>(numbers)");
  }
  constexpr internals::Applications* program() const { return nullptr; }
  constexpr int enter(internals::Applications&) const { return -1; }
};

namespace internals {
/// What stands behind a deviation: refused.
struct NoMore {
  constexpr NoMore() = default;
  template <class Number>
  requires(std::is_arithmetic_v<Number>) constexpr NoMore(Number) {
    static_assert(sizeof(Number) > 99, "parallel: normal takes its deviation alone, the mean is 0; write normal(0.1)");
  }
};
}  // namespace internals
/// Normal with mean 0 and this standard deviation.
constexpr Initializer normal(double deviation, internals::NoMore = {}) {
  return {Initializer::Kind::normal, deviation, true};
}
/// Normal, smaller by the square root of twice the depth (GPT-2's residual projections).
constexpr Initializer scaled_normal(double deviation, Dim layers) {
  if (layers.size < 1) deviation = -1;  // refused where it is used
  double root = 1, n = 2.0 * static_cast<double>(layers.size < 1 ? 1 : layers.size);
  for (int i = 0; i < 60; ++i) root = (root + n / root) / 2;
  return {Initializer::Kind::normal, deviation / root, true};
}
template <class Layers, class Fraction>
requires(std::is_floating_point_v<Fraction>) constexpr Initializer scaled_normal(Layers, Fraction deviation) {
  static_assert(
      sizeof(Layers) > 99,
      "parallel: scaled_normal takes its deviation, then how many layers there are; write scaled_normal(0.02, 12)");
  return normal(deviation);
}
/// Uniform with variance 2 / (fan in + fan out); the first dimension is fan in, the product of the others fan out
/// (Glorot and Bengio, 2010).
inline constexpr Initializer xavier{Initializer::Kind::xavier, 1, true};
/// The same, in the group of parameters that weight decay leaves alone: biases, gains.
constexpr Initializer without_decay(Initializer how) {
  how.decays = false;
  return how;
}
/// The same, in the group of parameters that Muon updates element by element, as it does vectors.
constexpr Initializer as_vector(Initializer how) {
  how.matrix = false;
  return how;
}
inline constexpr Initializer zeros{Initializer::Kind::constant, 0, false};
inline constexpr Initializer ones{Initializer::Kind::constant, 1, false};

namespace internals {
/// Whether what is applied to values of this program is noted. A value of none has no part in a program.
constexpr bool notes(const Applications* program) { return program != nullptr && !program->dry; }
/// Something that is used and that no member has declared.
constexpr int stray(Applications& program, const Type& type) {
  return program.add({.what = Application::What::stray, .type = &type});
}
}  // namespace internals

namespace internals {
template <class T, Kind kind_of_value, class S, class... Annotation>
struct Traced;
}  // namespace internals

/// A trained tensor of a model: `Parameter<float, Shape<768, 3072 / tensor>> up;`. What follows the shape are `On` and
/// `Stored` annotations.
template <class T, class S = void, class... Annotation>
struct Parameter : internals::Arithmetic<Parameter<T, S, Annotation...>> {
  static constexpr Type type = internals::spelling::type_of<T, S, Annotation...>();
  static constexpr internals::Storing storing = internals::spelling::storing_of<T, S, Annotation...>();
  static constexpr Kind kind = Kind::parameter;
  static constexpr Refusal refusal = std::is_same_v<T, int> ? Refusal{Reason::whole_parameter, {sizeof(T)}}
                                                            : internals::spelling::refused_given<T, S, Annotation...>();

  Initializer initializer{};
  internals::Applications* of = nullptr;
  int value = -1;  ///< its number among the applications

  constexpr Parameter() = default;
  constexpr Parameter(Initializer how) : initializer(how) {}
  template <class First, class... More>
  requires(sizeof...(More) > 0 || std::is_arithmetic_v<First> || std::is_pointer_v<First> || requires {
    typename First::value_type;
  }) constexpr Parameter(First, More...) {  // as a deviation without its distribution, or one without its deviation
    using begins [[maybe_unused]] =
        typename Refused<Reason::no_initializer, nullptr, std::int64_t{sizeof(First)}>::type;
  }
  /// What is computed of it is another value: refused.
  template <class X, Kind kind_of_value, class Y, class... More>
  constexpr const Parameter& operator=(const internals::Traced<X, kind_of_value, Y, More...>&) const {
    using changes [[maybe_unused]] =
        typename Refused<Reason::rebound, nullptr,
                         internals::Traced<X, kind_of_value, Y, More...>::type.layout.rank()>::type;
    if (of != nullptr) of->mistaken = true;
    return *this;
  }
  constexpr internals::Applications* program() const { return of; }
  constexpr int enter(internals::Applications& program) const {
    return value < 0 || of != &program ? stray(program, type) : value;
  }
};

namespace internals {
/// A symbolic value: its type says everything but what it was made of.
template <class T, Kind kind_of_value, class S, class... Annotation>
struct Traced : Arithmetic<Traced<T, kind_of_value, S, Annotation...>> {
  static constexpr Type type = spelling::type_of<T, S, Annotation...>();
  static constexpr Kind kind = kind_of_value;
  Applications* of = nullptr;
  int value = -1;  ///< its number among the applications
  constexpr Traced() = default;
  constexpr Traced(Applications* program, int v) : of(program), value(v) {}
  /// Of another type. A type holds what is known of a value, so an assignment cannot change it. (`auto`, so that this
  /// error is the first.)
  template <Distributed Y>
  constexpr auto& operator=(const Y&) {
    constexpr bool told = kind == Kind::refused || Y::kind == Kind::refused;
    using changes [[maybe_unused]] =
        typename Refused<told ? Reason::none : Reason::rebound, nullptr, Y::type.layout.rank()>::type;
    if (of != nullptr) of->mistaken = true;
    return *this;
  }
  /// The same of a value that is const, to which also one of its own type cannot be assigned. (No `auto`: std::tuple
  /// asks whether it is there.)
  template <class Y>
  requires requires { Y::type.layout; }
  constexpr const Traced& operator=(const Y&) const {
    using changes [[maybe_unused]] =
        typename Refused<kind == Kind::refused || Y::kind == Kind::refused ? Reason::none : Reason::rebound, nullptr,
                         Y::type.layout.rank()>::type;
    if (of != nullptr) of->mistaken = true;
    return *this;
  }
  constexpr Applications* program() const { return of; }
  constexpr int enter(Applications& program) const {
    return value < 0 || of != &program ? stray(program, type) : value;
  }
};

/// What a mistake without a tensor gives. Of what it is made in, so that it is made only where that is used.
template <class...>
struct NoResult {
  using type = Traced<float, Kind::refused, Shape<>>;
};

/// Whether the annotations of a tensor or parameter make sense; where they do not, asking is the one error.
template <class X>
constexpr bool accept_annotations() {
  using accepted [[maybe_unused]] =
      typename Refused<X::refusal.reason, X::refusal.axis, X::refusal.figures[0], X::refusal.figures[1]>::type;
  return !X::refusal;
}

namespace spelling {
template <class Types, int r, class Dims, class Others>
struct TracedOf;
template <class Types, int r, int... d, int... o>
struct TracedOf<Types, r, std::integer_sequence<int, d...>, std::integer_sequence<int, o...>> {
  static constexpr Type type = Types::value.results[r];
  using result = Traced<typename ElementOf<type.dtype>::type, Types::value.kind, Shape<type.layout.dims[d]...>,
                        OnAxis<type.layout.others[o].axis, type.layout.others[o].placement>...>;
};
}  // namespace spelling

/// The symbolic type of result `r`, where `Types::value` has `results` and `kind`.
template <class Types, int r = 0>
using traced_t =
    typename spelling::TracedOf<Types, r, std::make_integer_sequence<int, Types::value.results[r].layout.rank()>,
                                std::make_integer_sequence<int, Types::value.results[r].layout.others.size()>>::result;

/// A type of the interface as a symbolic value of some kind.
template <class X, Kind as>
struct Symbolic {
  struct Types {
    static constexpr Inference value = [] {
      Inference v;
      v.results.push_back(X::type);
      v.kind = as;
      return v;
    }();
  };
  using type = traced_t<Types>;
};

template <Reason reason, Distributed X, int figure>
constexpr auto mistaken() {
  using refused [[maybe_unused]] =
      typename Refused<X::kind == Kind::refused ? Reason::none : reason, nullptr, figure>::type;
  return typename Symbolic<X, Kind::refused>::type{};
}
}  // namespace internals

}  // namespace parallel
