// A model is a struct of parameters and of structs of parameters. This finds them, names them and declares them.
#pragma once
#include <algorithm>

#include <parallel/meta/members.hpp>
#include <parallel/model/scan.hpp>
#include <parallel/operation/operators.hpp>

namespace parallel {
namespace internals {
template <class X>
inline constexpr bool is_parameter = false;
template <class T, class S, class... Annotation>
inline constexpr bool is_parameter<Parameter<T, S, Annotation...>> = true;

template <class...>
struct Types {};
/// How the value that layers carry is moved to cross from stage to stage: by the words of Layers that are placements.
template <class X, class Placements, class... Word>
struct Crossing;
template <class X, class... Placed>
struct Crossing<X, Types<Placed...>> : spelling::Moving<X, Placed...> {};
template <class X, class... Placed, class First, class... Word>
struct Crossing<X, Types<Placed...>, First, Word...>
    : Crossing<X, std::conditional_t<is_of_keeping<First>, Types<Placed...>, Types<Placed..., First>>, Word...> {};
}  // namespace internals

/// `Layers<12, Block> blocks; y = blocks(x);`: twelve blocks one after the other, each with parameters of its own. The
/// block is traced once; parameters gain a leading dimension of layers.
///
/// `Layers<12 / stage, Block>` is a pipeline: each rank of the axis has a share of the layers, a cut between two is a
/// send, back a send back (graph/stages.hpp). `Layers<12 / stage, Block, On<tensor, Split<2>>>`: what crosses a cut is
/// placed so while it crosses; where the ranks of an axis have it alike, each sends its slice only, and the slices are
/// gathered behind the cut (Megatron's scatter and gather).
///
/// `Layers<12, Block, Recompute<>>`: what of a block the backward pass computes again; `KeepOnHost`: where the rest is
/// kept. An evaluation takes no notice.
template <Dim count, class Block, class... Word>
struct Layers {
  Block block{};

  /// `for (auto& block : blocks)`, `blocks[2]`: refused.
  struct One : Block {
    template <Distributed X, class... More>
    constexpr auto operator()(const X& x, const More&...) const {
      if (x.program() != nullptr) x.program()->mistaken = true;
      return typename internals::Symbolic<X, Kind::refused>::type{};
    }
  };
  template <std::int64_t layers = count.size>
  constexpr const One* begin() const {
    using refused [[maybe_unused]] = typename Refused<Reason::no_iteration, nullptr, layers>::type;
    return nullptr;
  }
  template <std::int64_t layers = count.size>
  constexpr const One* end() const {
    return begin<layers>();
  }
  template <class Index>
  constexpr One operator[](const Index&) const {
    static_cast<void>(begin<count.size + 0 * static_cast<std::int64_t>(sizeof(Index))>());
    return {};
  }

  template <class X, class... More>
  using Returned = std::remove_cvref_t<decltype(block(
      std::declval<const typename internals::Symbolic<X, Kind::activation>::type&>(), std::declval<const More&>()...))>;

  /// Every layer takes what the one before returned, and the same further operands.
  template <Distributed X, Distributed... More>
  constexpr auto operator()(const X& x, const More&... more) const {
    if constexpr (X::kind == Kind::refused) {
      return x;
    } else if constexpr (internals::is_source<X>) {
      return internals::mistaken<Reason::only_sources, X, 1>();
    } else if constexpr (!internals::meta::can_take<Block, typename internals::Symbolic<X, Kind::activation>::type,
                                                    More...>()) {
      return internals::mistaken<Reason::called_otherwise, X, 1 + static_cast<int>(sizeof...(More))>();
    } else if constexpr (!Distributed<Returned<X, More...>>) {
      return internals::mistaken<Reason::no_tensor, X, 1 + static_cast<int>(sizeof...(More))>();
    } else {
      using Carried = typename internals::Symbolic<X, Kind::activation>::type;
      using Result = Returned<X, More...>;
      using Crossed = internals::Crossing<X, internals::Types<>, Word...>;
      constexpr Refusal crossing = Crossed::value.refusal;
      constexpr Refusal refusal =
          crossing ? crossing : internals::carried_otherwise(X::type, Result::type, Result::kind);
      using accepted [[maybe_unused]] =
          typename Refused<refusal.reason, nullptr, refusal.figures[0], refusal.figures[1]>::type;
      if constexpr (refusal || Result::kind == Kind::refused) {
        return typename internals::Symbolic<X, Kind::refused>::type{};
      } else {
        internals::Applications* program = x.program();
        const auto called = [&](const Carried& taken) { return block(taken, more...); };
        if (!notes(program)) return static_cast<void>(called(Carried(program, -1))), Carried(program, -1);
        const int initial = x.enter(*program), outside = program->loop;
        const int carried = program->add({.what = internals::Application::What::carried});
        program->all[carried].loop = program->loop = carried;
        const auto body = [&]() -> internals::Returned {
          return {called(Carried(program, carried)).enter(*program), -1};
        };
        const int returned = program->iterate(initial, carried, X::type, static_cast<int>(count.size), body).state;
        const Layout* const crossed = count.count > 0 ? &Crossed::value.results[0].layout : nullptr;
        program->loop = outside;
        return Carried(program, program->add({.what = internals::Application::What::loop,
                                              .operands = {initial},
                                              .type = &X::type,
                                              .recomputation = internals::recomputation_of<Word...>(),
                                              .keeps_on_host = (std::is_same_v<Word, KeepOnHost> || ...),
                                              .carried = carried,
                                              .returned = returned,
                                              .count = static_cast<int>(count.size),
                                              .crossing = crossed}));
      }
    }
  }
};

namespace internals {
template <class X>
inline constexpr bool is_layers = false;
template <Dim count, class Block, class... Word>
inline constexpr bool is_layers<Layers<count, Block, Word...>> = true;
template <class X>
inline constexpr bool has_words_of_layers = true;
template <Dim count, class Block, class... Word>
inline constexpr bool has_words_of_layers<Layers<count, Block, Word...>> =
    keeps_once<Word...> &&
    ((is_of_keeping<Word> || (spelling::is_annotation<Word> && !spelling::is_stored<Word>)) && ...);
template <class X>
inline constexpr Dim layers_of{};
template <Dim count, class Block, class... Word>
inline constexpr Dim layers_of<Layers<count, Block, Word...>> = count;
template <class X>
inline constexpr const Recomputation* recomputed_in = nullptr;
template <Dim count, class Block, class... Word>
inline constexpr const Recomputation* recomputed_in<Layers<count, Block, Word...>> = recomputation_of<Word...>();

constexpr bool fits(const Recomputation* words, std::int64_t layers) { return words == nullptr || words->fits(layers); }

/// Whether something can be a member of a model.
template <class M>
constexpr bool can_be_module() {
  if constexpr (is_parameter<M> || is_layers<M>)
    return true;
  else if constexpr (!std::is_class_v<M> || Interface<M>)
    return false;
  else
    return meta::irregular<M>() < 0 && !meta::too_many_members<M>();
}
template <class M>
inline constexpr bool is_module = can_be_module<M>();

/// Whether a model has a loop somewhere, Layers or a Scan.
template <class M>
constexpr bool has_loop() {
  if constexpr (is_layers<M> || is_scan<M>) {
    return true;
  } else if constexpr (is_parameter<M> || !is_module<M>) {
    return false;
  } else {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      return (has_loop<std::remove_cvref_t<std::tuple_element_t<i, decltype(meta::members(std::declval<M&>()))>>>() ||
              ...);
    }
    (std::make_index_sequence<std::size_t{meta::member_count<M>()}>{});
  }
}
/// Whether to look into a member: what is wrong within a struct is said of the struct.
template <class M>
inline constexpr bool is_class_of_modules = is_parameter<M> || is_layers<M> ||
                                            (std::is_class_v<M> && !is_of_keeping<M> &&
                                             (std::is_aggregate_v<M> || meta::Described<M>)&&!Interface<M>);

/// Why something is no member of a model.
template <class M>
constexpr Reason why_no_module() {
  if constexpr (!std::is_class_v<M> || Interface<M> || is_of_keeping<M>)
    return Reason::not_a_module;
  else if constexpr (std::is_polymorphic_v<M>)
    return Reason::has_virtual;
  else if constexpr (!std::is_aggregate_v<M>)
    return Reason::has_constructor;
  else if constexpr (requires { M{meta::Base<M>{}}; })
    return Reason::has_base;
  else
    return Reason::not_a_module;
}

/// Whether a model consists of parameters, modules and Layers, soundly annotated; where it does not, asking is the one
/// error.
template <class M>
constexpr bool accept() {
  if constexpr (is_parameter<M>) {
    return accept_annotations<M>();
  } else if constexpr (is_layers<M>) {
    constexpr Dim depth = layers_of<M>;
    constexpr Reason reason = depth.size < 1                        ? Reason::bad_dimension
                              : depth.count > 1 || depth.ordered()  ? Reason::layers_split
                              : has_loop<decltype(M::block)>()      ? Reason::nested_layers
                              : !has_words_of_layers<M>             ? Reason::layers_words
                              : !fits(recomputed_in<M>, depth.size) ? Reason::recompute_words
                                                                    : Reason::none;
    using accepted [[maybe_unused]] = typename Refused<reason, nullptr, depth.size>::type;
    if constexpr (reason != Reason::none)
      return false;
    else
      return accept<decltype(M::block)>();
  } else if constexpr (is_scan<M>) {
    constexpr Dim steps = steps_of<M>;
    constexpr Reason reason = steps.size < 1                          ? Reason::bad_dimension
                              : steps.count > 0 || steps.ordered()    ? Reason::steps_split
                              : has_loop<decltype(M::cell)>()         ? Reason::nested_layers
                              : !has_words_of_scan<M>                 ? Reason::layers_words
                              : !fits(recomputed_over<M>, steps.size) ? Reason::recompute_words
                                                                      : Reason::none;
    using accepted [[maybe_unused]] = typename Refused<reason, nullptr, steps.size>::type;
    if constexpr (reason != Reason::none)
      return false;
    else
      return accept<decltype(M::cell)>();
  } else if constexpr (constexpr int irregular = meta::irregular<M>(); irregular >= 0 || meta::too_many_members<M>()) {
    constexpr Refusal refusal = irregular == 0  ? Refusal{why_no_module<M>()}
                                : irregular > 0 ? Refusal{Reason::not_a_module, {irregular}}
                                                : Refusal{Reason::too_many_members, {meta::max_members}};
    using accepted [[maybe_unused]] = typename Refused<refusal.reason, nullptr, refusal.figures[0]>::type;
    return false;
  } else {
    return []<std::size_t... i>(std::index_sequence<i...>) {
      constexpr bool modules[] = {
          is_class_of_modules<
              std::remove_cvref_t<std::tuple_element_t<i, decltype(meta::members(std::declval<M&>()))>>>...,
          true};
      constexpr int position =
          static_cast<int>(std::find(std::begin(modules), std::end(modules), false) - std::begin(modules)) + 1;
      constexpr bool whole = position > static_cast<int>(sizeof...(i)) + 1;
      constexpr Reason reasons[] = {
          why_no_module<std::remove_cvref_t<std::tuple_element_t<i, decltype(meta::members(std::declval<M&>()))>>>()...,
          Reason::none};
      using accepted [[maybe_unused]] =
          typename Refused<whole ? Reason::none : reasons[whole ? 0 : position - 1], nullptr, position>::type;
      if constexpr (whole)
        return (accept<std::remove_cvref_t<std::tuple_element_t<i, decltype(meta::members(std::declval<M&>()))>>>() &&
                ...);
      else
        return false;
    }
    (std::make_index_sequence<std::size_t{meta::member_count<M>()}>{});
  }
}

/// "blocks" becomes "blocks.*", an empty path the first name. Returns the length to go back to.
constexpr int go_below(Vector<char>& path, std::string_view name) {
  const int above = path.size(), point = above > 0 ? 1 : 0;
  char* to = path.extend(point + static_cast<int>(name.size()));
  if (point > 0) *to++ = '.';
  for (const char c : name) *to++ = c;
  return above;
}
/// Declares every parameter of an accepted model, in the order of the structs, under its path ("blocks.*.mlp.down"),
/// which begins with what `path` holds.
template <class M>
constexpr void declare(M& model, Trace& trace, Applications& program, Vector<char>& path, Dim layers = Dim(0)) {
  if constexpr (is_parameter<M>) {
    Member member;
    member.path = trace.graph.name({}, {std::string_view(path.begin(), static_cast<std::size_t>(path.size()))});
    Storing storing = M::storing;
    for (const StoredOn& s : trace.stored)
      if (!M::storing.axes.contains(s.axis) && M::type.layout.on(s.axis).whole() &&
          (M::storing.axes.empty() || s.alike(M::storing.stage, M::storing.gathered)))
        s.of(storing);
    // what is used in bf16 or f16 is kept, and updated, in f32
    const DType dtype = precise(M::type.dtype);
    member.type = {dtype, storing.lies_split(dtype == M::type.dtype) ? storing.split : storing.whole};
    member.initializer = model.initializer;
    if (layers.size > 0) {
      member.layers = static_cast<int>(layers.size);
      member.type.layout = with_leading(member.type.layout, layers);
    }
    trace.storing.resize(trace.graph.members.size() + 1, {});
    trace.storing.back() = storing;
    const MembersCalled* const said = trace.grouping.of(trace.graph.text(member.path));
    const int value = trace.declare(operation::parameter, member, Kind::parameter, said == nullptr || !said->frozen);
    model.of = &program;
    model.value =
        program.add({.what = Application::What::given, .type = &M::type, .stacked = layers.size > 0, .value = value});
  } else if constexpr (is_layers<M>) {
    if constexpr (layers_of<M>.count > 0) trace.graph.stages = layers_of<M>.axes[0];
    const int above = go_below(path, "*");
    declare(model.block, trace, program, path, layers_of<M>);
    path.resize(above);
  } else {
    meta::each_member(model, [&](auto& member, auto i) {
      const int above = go_below(path, meta::member_name<M, i>);
      declare(member, trace, program, path, layers);
      path.resize(above);
    });
  }
}
}  // namespace internals

}  // namespace parallel
