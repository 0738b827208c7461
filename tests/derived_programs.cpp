// Random programs over meshes of two and three axes, with what somebody who knew the rule's text alone derived for
// them: the layout of every result, every move, forward and backward, every call of the plan, or where and why the
// program is refused. PARALLEL_PROGRAMS is a file of them, a JSON object a line.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "noted.hpp"

using namespace parallel;
using namespace parallel::internals;
using Json = nlohmann::json;

namespace {

constexpr Axis known_axes[]{Axis("a"), Axis("b"), Axis("c")};
const Axis* axis(const std::string& name) {
  for (const Axis& x : known_axes)
    if (x.text() == name) return &x;
  throw std::invalid_argument("no axis " + name);
}

Layout layout_of(const Json& shape, const Json& l) {
  Layout layout;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    Dim dim(shape[d].get<std::int64_t>());
    for (const Json& name : l["split"][d]) dim = dim / *axis(name);
    layout.dims.push_back(dim);
  }
  for (const auto& [name, placed] : l["place"].items())
    if (placed != "I") layout = layout.with(axis(name), placed == "B" ? Placement(Broadcast) : Placement(Partial));
  return layout;
}
/// A layout with its annotations by name, so that equal ones are equal texts.
std::string text_of(const Layout& layout) {
  Layout sorted = layout;
  sorted.others.count = 0;
  for (const Axis& x : known_axes)
    for (const Placed& p : layout.others)
      if (p.axis == &x) sorted.others.push_back(p);
  return text(Type{DType::f32, sorted});
}
std::int64_t elements_beside(const Layout& layout, const AxisList& moved, const Mesh& mesh) {
  std::int64_t n = layout.elements();
  for (const Dim& d : layout.dims)
    for (const Axis* x : d)
      if (!moved.contains(x)) n /= mesh.extent(x);
  return n;
}

using Texts = std::vector<std::string>;
std::string joined(const Texts& all) {
  std::string text;
  for (const std::string& one : all) text += (text.empty() ? "" : "; ") + one;
  return "{" + text + "}";
}
/// On which axis a value is retyped or masked first has no meaning, so these are told by their axis alone.
std::string move_text(std::string_view kind, AxisList on, const Layout& before, const Layout& after,
                      std::int64_t elements) {
  routing::sort_by_name(on);
  if (kind == "retype" || kind == "mask")
    return std::string(kind) + " " + text(on) + " to " + text(after.on(on[0])) + " of " + std::to_string(elements);
  return std::string(kind) + " " + text(on) + " " + text_of(before) + " -> " + text_of(after) + " of " +
         std::to_string(elements);
}

/// What the library makes of a program. Operations within layers stand before the layers, whose own moves are those of
/// what a layer returns.
struct Made {
  std::string refused = "accepted";
  struct Result {
    std::string layout{};
    AxisList exchanging{};
    Texts moves{}, free{}, own{};  ///< what sends, in order; what sends nothing, sorted
    std::vector<bool> data{};      ///< of each value that it can take
  };
  std::vector<Result> ops{};
  Texts result{};                    ///< moves that complete the loss
  Texts backward{}, own_backward{};  ///< conjugates and completions, one for each axis; no retypes
  Texts calls{};                     ///< of the plan, but of the optimizer and of operations' own
  std::string planned{};             ///< why there is no plan
};

struct Known {
  const char* name;
  const Operation* operation;
};
constexpr Known known[]{{"add", &operation::add},
                        {"subtract", &operation::subtract},
                        {"multiply", &operation::multiply},
                        {"matmul", &operation::matmul},
                        {"square", &operation::square},
                        {"relu", &operation::relu},
                        {"gelu", &operation::gelu},
                        {"scale", &operation::scale},
                        {"sum", &operation::sum},
                        {"mean", &operation::sum},
                        {"transpose", &operation::transpose},
                        {"reshape", &operation::reshape},
                        {"slice", &operation::slice},
                        {"softmax", &operation::softmax},
                        {"layer_norm", &operation::layer_norm},
                        {"rms_norm", &operation::rms_norm},
                        {"embedding", &operation::embedding},
                        {"cross_entropy", &operation::cross_entropy},
                        {"attention", &operation::attention}};

class Making {
 public:
  explicit Making(const Json& program) : json_(program) {}

  Made made() {
    std::vector<noted::Value> values = declared(json_["tensors"], 0);
    std::vector<std::vector<noted::Value>> of_layers;
    for (const Json& op : json_["ops"])
      if (op["op"] == "layers") of_layers.push_back(declared(op["tensors"], op["count"]));
    std::size_t layers = 0;
    for (std::size_t k = 0; k < json_["ops"].size(); ++k) {
      const Json& op = json_["ops"][k];
      const std::string at = " at op " + std::to_string(k);
      if (op["op"] != "layers") {
        if (!add(applied(op, values), values, at)) return made_;
        continue;
      }
      const noted::Value initial = values[op["operands"][0].get<std::size_t>()],
                         carried = program_.begin_layers(initial);
      std::vector<noted::Value> within{carried};
      within.insert(within.end(), of_layers[layers].begin(), of_layers[layers].end());
      ++layers;
      for (std::size_t i = 0; i < op["ops"].size(); ++i)
        if (!add(applied(op["ops"][i], within), within, at + "." + std::to_string(i))) return made_;
      const noted::Value last = program_.end_layers(initial, carried, within.back(), op["count"]);
      layers_at_.push_back(made_.ops.size());
      if (!add(last, values, at + "." + std::to_string(op["ops"].size()))) return made_;
      made_.ops.back().data = data_of(within);
    }
    if (const Refusal refusal = noted::Program::refused(values.back(), true)) {
      made_.refused = told(refusal) + " at op " + std::to_string(json_["ops"].size());
      return made_;
    }
    graph_ = program_.trained<Sgd>(values.back());
    mesh_ = mesh();
    for (int n = 0; n < graph_.nodes.size(); ++n)
      if (graph_.nodes[n].operation == &operation::move) tell(graph_.nodes[n], program_.derived(n));
    for (Made::Result& op : made_.ops) std::sort(op.free.begin(), op.free.end());
    try {
      call(derive(fuse(graph_), mesh_, {}, {}));
    } catch (const MeshRefused& refused) {
      made_.planned = refused.what();
    }
    return made_;
  }

  /// Reasons that say the same of different pairs of operands are one.
  static std::string told(const Refusal& refusal) {
    const bool differ = refusal.reason == Reason::split_otherwise;
    return std::string(name_of(differ ? Reason::disagree : refusal.reason));
  }

 private:
  std::vector<noted::Value> declared(const Json& tensors, int layers) {
    std::vector<noted::Value> values;
    for (const Json& t : tensors) {
      const Type type{t["dtype"] == "i32" ? DType::i32 : DType::f32, layout_of(t["shape"], t["layout"])};
      if (t["kind"] == "parameter") {
        Member member;
        member.path = program_.name("p" + std::to_string(++members_));
        member.type = type;
        for (const Placed& p : type.layout.others)
          if (p.placement == Broadcast) member.type.layout = member.type.layout.with(p.axis, Invariant);
        values.push_back(program_.parameter(member, type, layers));
      } else {
        values.push_back(program_.input(type, t["kind"] == "wanted"));
      }
    }
    return values;
  }
  static std::vector<bool> data_of(const std::vector<noted::Value>& values) {
    std::vector<bool> data;
    for (const noted::Value& v : values) data.push_back(v.kind == Kind::data);
    return data;
  }
  /// Whether it is accepted: then it is one of the values.
  bool add(const noted::Value& value, std::vector<noted::Value>& values, const std::string& at) {
    if (value.refusal) {
      made_.refused = told(value.refusal) + at;
      return false;
    }
    made_.ops.push_back({std::string(name_of(value.type.dtype)) + text_of(value.type.layout).substr(3),
                         value.exchanging,
                         {},
                         {},
                         {},
                         data_of(values)});
    values.push_back(value);
    return true;
  }

  noted::Value applied(const Json& op, const std::vector<noted::Value>& values) {
    const std::string name = op["op"];
    std::vector<noted::Value> operands;
    for (const Json& o : op["operands"]) operands.push_back(values[o.get<std::size_t>()]);
    const int line = static_cast<int>(made_.ops.size()) + 1;
    const Layout& x = operands[0].type.layout;
    if (name == "to") {
      Json shape = Json::array();
      for (const Dim& d : x.dims) shape.push_back(d.size);
      return program_.to(operands[0], layout_of(shape, op["layout"]), line);
    }
    Ints ints;
    if (op.contains("ints"))
      for (const Json& i : op["ints"]) ints.push_back(i.get<std::int64_t>());
    double first = 0;
    if (name == "scale") {
      first = static_cast<double>(ints[0]) / static_cast<double>(ints[1]);
      ints = {};
    } else if (name == "sum" || name == "mean") {
      first = 1;
      for (int d = 0; name == "mean" && d < x.rank(); ++d)
        if (ints.empty() || ints.contains(d)) first /= static_cast<double>(x.dims[d].size);
    } else if (name == "matmul") {
      const int rank = operands[1].type.layout.rank();
      ints = {1, 0, 0, rank > 2 ? rank - 2 : 0};
    } else if (name == "layer_norm" || name == "rms_norm") {
      first = 1e-5;
    } else if (name == "embedding") {
      std::swap(operands[0], operands[1]);
    } else if (name == "cross_entropy") {
      ints = {x.dims[x.rank() - 1].size, no_target};
    } else if (name == "attention") {
      ints = {1, 0, 0};
      first = operation::scale_of_scores(operands[0].type);
    }
    for (const Known& k : known)
      if (name == k.name) return program_.apply(*k.operation, operands, ints, first, 0, line);
    throw std::invalid_argument("no operation " + name);
  }

  Mesh mesh() const {
    Mesh mesh;
    for (const Json& extent : json_["mesh"]) {
      const Axis* on = axis(extent[0]);
      bool named = false;
      for (const parallel::internals::Value& v : graph_.values) named = named || !(v.type.layout.on(on) == Invariant);
      if (named) mesh.axes[mesh.count++] = {on, extent[1].get<int>()};
    }
    return mesh;
  }

  /// The layout of one layer's part of what is moved for all layers at once.
  Layout layer_of(int value) const {
    const parallel::internals::Value& v = graph_.values[value];
    if (v.stack == 0) return v.type.layout;
    Layout one = v.type.layout;
    one.dims.erase(0);
    return one;
  }
  /// The layers whose loop a region is, forward or backward: by their order among the operations.
  std::size_t layers_of(int region) const {
    std::size_t before = 0;
    for (int r = 0; r < region; ++r)
      before += graph_.regions[r].kind == RegionKind::layers && !graph_.regions[r].reversed ? 1 : 0;
    return layers_at_[before];
  }

  /// Whether a move is a collective of an operation itself.
  bool exchanges(const Transition& t, std::size_t op) const {
    bool own = t.collective == Collective::all_reduce;
    for (const Axis* x : t.axes) own = own && made_.ops[op].exchanging.contains(x);
    return own;
  }
  /// What a plan calls forward and backward; a sum of several
  /// gradients is one call for each of them here, one over several axes one for each of these.
  static bool moves_by_layer(const GraphView& g, const Node& node) {
    for (const Stack& stack : g.stacks)
      if (stack.inside == node.result && fills(g, stack)) return true;
    const Value& moved = g.value(node.operands[0]);
    return moved.kind == Kind::parameter && g.node(moved.node).operation == &operation::layer;
  }
  void call(const Plan& plan) {
    plan.all.each([&](const Node& node, std::int64_t times) {
      const Origin& origin = plan.graph.origin(node);
      const bool of_op = origin.source.line > 0 && origin.operation != &operation::returned &&
                         origin.operation != &operation::parameter;
      if (node.phase == Phase::optimizer && origin.operation != &operation::returned) return;
      if (of_op && exchanges(node.transition, static_cast<std::size_t>(origin.source.line) - 1)) return;
      const Node& maker = plan.graph.maker(node.operands[0]);
      List<int, max_node_operands> moved{node.operands[0]};
      if (maker.operation == &operation::bucket) moved = maker.operands;
      // the text has a parameter of layers move once for all; its matrices do so layer by layer, as many elements in all
      const bool by_layer = moves_by_layer(plan.graph, node);
      for (std::int64_t left = by_layer ? 1 : times; left > 0; --left)
        for (const int value : moved)
          for (const Axis* x : node.transition.axes)
            made_.calls.push_back(called(name_of(node.transition.collective), x,
                                         (by_layer ? times : 1) * elements_beside(plan.graph.value(value).type.layout,
                                                                                  node.transition.axes, mesh_)));
    });
    std::sort(made_.calls.begin(), made_.calls.end());
  }

  void tell(const Node& node, bool derived) {
    const Origin origin = node.origin >= 0 ? graph_.origins[node.origin] : Origin{};
    const bool returned = origin.operation == &operation::returned;
    const bool handed_on = origin.operation == &operation::carry && node.phase == Phase::forward;
    bool of_op = origin.source.line > 0 && !returned && origin.operation != &operation::parameter;
    const std::size_t op = handed_on ? layers_of(node.region)
                           : of_op   ? static_cast<std::size_t>(origin.source.line) - 1
                                     : 0;
    of_op = of_op || handed_on;
    const Layout before = layer_of(node.operands[0]), after = layer_of(node.result);
    const Transition& t = node.transition;
    const std::int64_t elements = elements_beside(before, t.axes, mesh_);
    const std::string moved = move_text(name_of(t.collective), t.axes, before, after, elements);
    const bool own = of_op && exchanges(t, op);
    AxisList sorted = t.axes;
    routing::sort_by_name(sorted);
    const std::string exchanged =
        "all_reduce " + text(sorted) + (t.maximum ? " max" : "") + " of " + std::to_string(elements);
    const bool communicating = communicates(t.collective), retypes = t.collective == Collective::retype;
    if (node.phase == Phase::forward) {
      if (returned)
        made_.result.push_back(moved);
      else if (own)
        made_.ops[op].own.push_back(exchanged);
      else if (of_op && communicating)
        made_.ops[op].moves.push_back(moved);
      else if (of_op && (!retypes || graph_.values[node.operands[0]].differentiable))
        made_.ops[op].free.push_back(moved);
    } else if (own && derived) {
      made_.own_backward.push_back(exchanged);
    } else if ((derived || returned) && !retypes) {
      for (const Axis* x : sorted)
        made_.backward.push_back(backward_text(name_of(t.collective), {x}, before, after, elements));
    }
  }

 public:
  static std::string called(std::string_view kind, const Axis* on, std::int64_t elements) {
    return std::string(kind) + " " + std::string(on->text()) + " of " + std::to_string(elements);
  }
  /// A sum over several axes is one sum for each; how what it completes lies on the others depends on their order.
  static std::string backward_text(std::string_view kind, const AxisList& on, const Layout& before, const Layout& after,
                                   std::int64_t elements) {
    if (kind == "all_reduce")
      return "all_reduce " + text(on) + " to " + text(after.on(on[0])) + " of " + std::to_string(elements);
    return move_text(kind, on, before, after, elements);
  }

 private:
  const Json& json_;
  noted::Program program_{};
  int members_ = 0;
  std::vector<std::size_t> layers_at_{};
  Graph graph_{};
  Mesh mesh_{};
  Made made_{};
};

/// How a made program differs from what was expected, a sentence for each difference.
class Comparing {
 public:
  Comparing(const Json& program, const Made& made) : json_(program), expect_(program["expect"]), made_(made) {}

  Texts differences() {
    const Json& refused = expect_["refused"];
    same("refusal", refused.is_null() ? "accepted" : told(refused), made_.refused);
    const bool built = made_.refused == "accepted" && refused.is_null();  // what was not built has no moves
    std::vector<Json> shapes = shapes_of(json_["tensors"], {});
    Texts backward, exchanged;
    for (std::size_t k = 0; k < std::min(json_["ops"].size(), expect_["ops"].size()); ++k) {
      const Json &op = expect_["ops"][k], &applied = json_["ops"][k];
      const std::string at = "op " + std::to_string(k);
      if (applied["op"] == "layers") {
        std::vector<Json> within = shapes_of(applied["tensors"], {shapes[applied["operands"][0].get<std::size_t>()]});
        for (std::size_t i = 0; i < op["body"].size(); ++i)
          compare(at + "." + std::to_string(i) + " " + applied["ops"][i]["op"].get<std::string>(), op["body"][i],
                  op["body"][i]["moves"], within, within, built);
        compare(at + " layers", op, op["return"], within, shapes, built);
        if (!built) continue;
        add(backward, backwards(op["body_backward"], within));
        add(exchanged, own(op["body_own_backward"]));
        for (const Json& g : op["body_gradients"])
          for (const Json& name : g["pending"]) {
            const Layout layout = layout_of(within[g["value"].get<std::size_t>()], g["layout"]);
            add(backward, {Making::backward_text("all_reduce", {axis(name)}, layout, layout.with(axis(name), Invariant),
                                                 elements_beside(layout, {axis(name)}, mesh()))});
          }
      } else {
        compare(at + " " + applied["op"].get<std::string>(), op, op["moves"], shapes, shapes, built);
      }
    }
    if (!built) return found_;
    if (!made_.planned.empty()) found_.push_back("no plan: " + made_.planned);
    same("result", moves(expect_["result"], true, shapes, {}), made_.result);
    add(backward, backwards(expect_["backward"], shapes));
    for (const Json& g : expect_["gradients"]) add(backward, backwards(g["completion"], shapes));
    add(exchanged, own(expect_["own_backward"]));
    same("backward", sorted(backward), sorted(made_.backward));
    same("own backward", sorted(exchanged), sorted(made_.own_backward));
    same("calls", calls(), made_.calls);
    return found_;
  }

 private:
  static void add(Texts& to, const Texts& more) { to.insert(to.end(), more.begin(), more.end()); }
  static Texts sorted(Texts all) {
    std::sort(all.begin(), all.end());
    return all;
  }
  void same(const std::string& what, const std::string& expected, const std::string& made) {
    if (expected != made) found_.push_back(what + ": expected " + expected + ", made " + made);
  }
  void same(const std::string& what, const Texts& expected, const Texts& made) {
    if (expected != made) found_.push_back(what + ": expected " + joined(expected) + ", made " + joined(made));
  }
  static std::vector<Json> shapes_of(const Json& tensors, std::vector<Json> shapes) {
    for (const Json& t : tensors) shapes.push_back(t["shape"]);
    return shapes;
  }
  Mesh mesh() const {
    Mesh mesh;
    for (const Json& extent : json_["mesh"]) mesh.axes[mesh.count++] = {axis(extent[0]), extent[1].get<int>()};
    return mesh;
  }

  /// The next operation. `shapes`: of what its moves take, `results`: where its result comes to stand.
  void compare(const std::string& at, const Json& op, const Json& moved, std::vector<Json>& shapes,
               std::vector<Json>& results, bool built) {
    if (next_ == made_.ops.size()) return;
    const Made::Result& made = made_.ops[next_++];
    same(at + " layout", op["dtype"].get<std::string>() + text_of(layout_of(op["shape"], op["layout"])).substr(3),
         made.layout);
    if (built) {
      same(at + " moves", moves(moved, true, shapes, made.data), made.moves);
      same(at + " free moves", sorted(moves(moved, false, shapes, made.data)), made.free);
      same(at + " own", own(op["own"]), made.own);
    }
    results.push_back(op["shape"]);
  }

  static std::string told(const Json& refused) {
    static const std::map<std::string, std::string> called{{"broadcast_to_invariant", "never_invariant"},
                                                           {"broadcast_loss", "loss_broadcast"},
                                                           {"split_otherwise", "disagree"}};
    const std::string reason = refused["reason"];
    return (called.contains(reason) ? called.at(reason) : reason) + " at op " +
           std::to_string(refused["op"].get<int>()) +
           (refused.contains("inner") ? "." + std::to_string(refused["inner"].get<int>()) : "");
  }

  static AxisList on(const Json& move) {
    AxisList list;
    for (const Json& name : move["axes"]) list.push_back(axis(name));
    routing::sort_by_name(list);
    return list;
  }
  static bool sends(const Json& move) {
    const std::string kind = move["kind"];
    return kind.starts_with("all_") || kind == "reduce_scatter";
  }
  /// Those that send, or those that do not and that a gradient goes back through.
  static Texts moves(const Json& list, bool sending, const std::vector<Json>& shapes, const std::vector<bool>& data) {
    Texts all;
    for (const Json& m : list) {
      const auto value = m["value"].get<std::size_t>();
      if (!m.value("new", true) || sends(m) != sending || (m["kind"] == "retype" && value < data.size() && data[value]))
        continue;
      all.push_back(move_text(m["kind"].get<std::string>(), on(m), layout_of(shapes[value], m["before"]),
                              layout_of(shapes[value], m["after"]), m["elements"]));
    }
    return all;
  }
  static Texts backwards(const Json& list, const std::vector<Json>& shapes) {
    Texts all;
    for (const Json& m : list) {
      const Json& shape = shapes[m["value"].get<std::size_t>()];
      for (const Axis* x : m["kind"] == "retype" ? AxisList{} : on(m))
        all.push_back(Making::backward_text(m["kind"].get<std::string>(), {x}, layout_of(shape, m["before"]),
                                            layout_of(shape, m["after"]), m["elements"]));
    }
    return all;
  }
  static Texts own(const Json& list) {
    Texts all;
    for (const Json& w : list)
      all.push_back(w["kind"].get<std::string>() + " " + text(on(w)) + (w["what"] == "max" ? " max" : "") + " of " +
                    std::to_string(w["elements"].get<std::int64_t>()));
    return all;
  }

  Texts calls() const {
    Texts all;
    for (const Json& phase : expect_["collectives"])
      for (const Json& c : phase) {
        for (const char name : c[1].get<std::string>())  // "a+b"
          if (name != '+') all.push_back(Making::called(c[0].get<std::string>(), axis({name}), c[2]));
      }
    return sorted(all);
  }

  const Json& json_;
  const Json& expect_;
  const Made& made_;
  std::size_t next_ = 0;
  Texts found_{};
};

}  // namespace

TEST_CASE("what is derived for random programs is what the rule says") {
  const char* file = std::getenv("PARALLEL_PROGRAMS");
  REQUIRE(file != nullptr);
  std::ifstream lines(file);
  int programs = 0, refused = 0, moves = 0;
  for (std::string line; std::getline(lines, line);) {
    const Json program = Json::parse(line);
    const Made made = Making(program).made();
    ++programs;
    refused += made.refused != "accepted" ? 1 : 0;
    for (const Made::Result& op : made.ops) moves += static_cast<int>(op.moves.size());
    moves += static_cast<int>(made.backward.size());
    for (const std::string& difference : Comparing(program, made).differences())
      FAIL_CHECK("program " << program["id"] << " " << difference);
  }
  MESSAGE(programs << " programs, " << refused << " of them refused, " << moves << " moves");
  CHECK(programs > 100);
}

TEST_CASE("a gradient is completed over several axes at once where nothing else needs what is between") {
  const auto whole = [](std::int64_t m, std::int64_t n) { return Layout{{Dim(m), Dim(n)}, {}}; };
  const auto calls = [&](bool used_between) {
    noted::Program program;
    const auto parameter = [&](const char* path, const Layout& layout) {
      Member member;
      member.path = program.name(path);
      member.type = {DType::f32, layout};
      return program.parameter(member, member.type);
    };
    const Layout both{{Dim(6), Dim(8) / known_axes[0] / known_axes[1]}, {}}, one{{Dim(6), Dim(8) / known_axes[0]}, {}};
    const noted::Value w = parameter("w", both), v = parameter("v", one);
    const noted::Value x = program.input({DType::f32, whole(4, 6)}, true);
    const auto total = [&](const noted::Value& value) {
      return program.apply(operation::sum, {program.apply(operation::square, {value})}, {}, 1);
    };
    const Ints product{1, 0, 0, 0};
    const noted::Value through_both = total(program.apply(operation::matmul, {x, w}, product));
    const noted::Value through_one = total(program.apply(operation::matmul, {x, v}, product));
    const noted::Value loss = used_between ? program.apply(operation::add, {through_both, through_one}) : through_both;
    const OwnedPlan plan = derive(fuse(program.trained<Sgd>(loss)), Mesh{known_axes[0] = 2, known_axes[1] = 2}, {}, {});
    Texts all;
    plan->backward.each([&](const Node& node, std::int64_t) { all.push_back(text(node.transition.axes)); });
    return all;
  };
  CHECK(calls(false) == Texts{"a+b"});
  CHECK(calls(true) == Texts{"b", "a"});
}
