// Reads what object.hpp has written into an object file. The words may come from anybody: every length, index and enumeration is checked, and
// that the passes can work on the graph; nothing of it is executed.
#pragma once
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <parallel/plan/derive.hpp>

namespace parallel::object {

/// Words that are no program of this library: truncated, damaged, or made by another version.
struct Damaged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A program as an object file carries it. Its graph points into it, so it stays where it is.
struct Carried {
  std::string name{};        ///< "Training<Mlp, AdamW>(f32[4096/data, 768])", the same from every compiler
  std::int64_t checksum = 0;  ///< meshes name their program by it
  Graph graph{};
  std::deque<Axis> axes{};
  std::deque<Operation> operations{};
  std::deque<std::string> words{};  ///< names of operations and files

  Carried() = default;
  Carried(const Carried&) = delete;
  Carried& operator=(const Carried&) = delete;

  const Axis* axis(std::string_view named) const {
    for (const Axis& a : axes)
      if (a.text() == named) return &a;
    return nullptr;
  }
};
/// A mesh that the compiler planned a program for, its axes by name.
struct CarriedMesh {
  std::int64_t program = 0;
  std::vector<std::pair<std::string, int>> axes{};
};

inline constexpr int most_nodes = 20'000;  ///< larger graphs are refused: passes take time in the square of it

class Reader {
 public:
  explicit Reader(std::span<const std::int64_t> words) : words_(words) {}

  std::unique_ptr<Carried> program() {
    begin();
    auto result = std::make_unique<Carried>();
    Carried& c = *result;
    carried_ = &c;
    c.checksum = words_[4];
    const std::string model = text(4096), optimizer = text(4096);
    const int micro_batches = whole(1, 1 << 20);
    for (auto n = count(most_nodes); n > 0; --n) {
      Axis axis{};
      const std::string name = text(sizeof axis.name - 1);
      require(!name.empty() && c.axis(name) == nullptr, "an axis has no name, or that of another");
      std::memcpy(axis.name, name.data(), name.size());
      c.axes.push_back(axis);
    }
    for (auto n = count(most_nodes); n > 0; --n) operation();
    for (auto n = count(most_nodes); n > 0; --n) c.words.push_back(text(4096)), files_.push_back(c.words.back().c_str());
    Graph& g = c.graph;
    for (auto n = count(4 * most_nodes); n > 0; --n) g.values.push_back(value());
    for (auto n = count(most_nodes); n > 0; --n) g.nodes.push_back(node());
    for (auto n = count(most_nodes); n > 0; --n) g.order.push_back(whole(0, most_nodes));
    for (auto n = count(most_nodes); n > 0; --n) {
      Region r;
      r.kind = enumeration<RegionKind>(3);
      r.parent = index(), r.count = whole(1, 1 << 20), r.reversed = flag(), r.loop = index(), r.begin = index(), r.end = index();
      g.regions.push_back(r);
    }
    for (auto n = count(most_nodes); n > 0; --n) {
      Carry carry;
      carry.region = index(), carry.initial = index(), carry.inside = index(), carry.returned = index(), carry.result = index();
      g.carries.push_back(carry);
    }
    for (auto n = count(most_nodes); n > 0; --n) {
      Stack stack;
      stack.region = index(), stack.inside = index(), stack.outside = index();
      g.stacks.push_back(stack);
    }
    for (auto n = count(most_nodes); n > 0; --n) g.origins.push_back(origin());
    for (auto n = count(most_nodes); n > 0; --n) g.members.push_back(member());
    for (auto n = count(1024); n > 0; --n) g.scalars.push_back(Name(text(15)));
    g.scalar_value = index(), g.commit = index(), g.misused = index();
    g.outputs = list<Outputs>();
    require(at_ == words_.size(), "words are left over");
    check_graph(g);
    c.name = optimizer.empty() ? "Evaluation<" + model + ">" : "Training<" + model + ", " + optimizer + ">";
    if (micro_batches > 1) c.name = "Accumulate<" + std::to_string(micro_batches) + ", " + c.name + ">";
    std::string inputs;
    for (const Member& m : g.members)
      if (m.role == Role::input) inputs += (inputs.empty() ? "" : ", ") + parallel::text(m.type);
    c.name += "(" + inputs + ")";
    return result;
  }

  CarriedMesh mesh() {
    begin();
    CarriedMesh result;
    result.program = word();
    for (auto n = count(max_axes); n > 0; --n) {
      std::string name = text(15);
      result.axes.emplace_back(std::move(name), whole(1, 1 << 20));
    }
    require(at_ == words_.size(), "words are left over");
    return result;
  }

 private:
  static void require(bool sound, const char* what) {
    if (!sound) throw Damaged(what);
  }
  void begin() {
    require(words_.size() >= static_cast<std::size_t>(header), "it ends within its header");
    require(words_[2] == version, "it was written by another version of the library");
    require(words_[3] == static_cast<std::int64_t>(words_.size()), "its length is wrong");
    require(words_[4] == object::checksum(words_.subspan(header)), "its checksum is wrong");
    at_ = header;
  }
  std::int64_t word() {
    require(at_ < words_.size(), "it ends too early");
    return words_[at_++];
  }
  int whole(std::int64_t least, std::int64_t most) {
    const std::int64_t w = word();
    require(w >= least && w <= most, "a number is out of range");
    return static_cast<int>(w);
  }
  int index() { return whole(-1, 4 * most_nodes); }
  int count(int most) { return whole(0, most); }
  bool flag() { return whole(0, 1) == 1; }
  template <class E>
  E enumeration(int values) {
    return static_cast<E>(whole(0, values - 1));
  }
  std::string text(int most) {
    std::string result(static_cast<std::size_t>(count(most)), '\0');
    for (std::size_t i = 0; i < result.size(); i += 8) {
      const std::int64_t w = word();
      for (std::size_t k = i; k < result.size() && k < i + 8; ++k) result[k] = static_cast<char>(static_cast<std::uint64_t>(w) >> (8 * (k - i)) & 0xff);
    }
    for (const char c : result) require(static_cast<unsigned char>(c) >= 32 && c != 127, "a name has a control character");
    return result;
  }
  template <class L>
  L list() {
    L result;
    for (auto n = count(static_cast<int>(std::size(result.items))); n > 0; --n)
      result.push_back(static_cast<std::remove_cvref_t<decltype(result.items[0])>>(sizeof(result.items[0]) == 8 ? word() : index()));
    return result;
  }
  const Axis* axis() { return &carried_->axes[static_cast<std::size_t>(whole(0, static_cast<int>(carried_->axes.size()) - 1))]; }
  AxisList axis_list() {
    AxisList result;
    for (auto n = count(max_axes); n > 0; --n) {
      const Axis* a = axis();
      require(!result.contains(a), "an axis is named twice");
      result.push_back(a);
    }
    return result;
  }
  Placement placement() {
    Placement p;
    p.kind = enumeration<PlacementKind>(5);
    p.dim = static_cast<decltype(p.dim)>(whole(-1, max_rank));
    p.coordinates = static_cast<decltype(p.coordinates)>(word());
    return p;
  }
  Type type() {
    Type t;
    t.dtype = enumeration<DType>(4);
    AxisList named;
    const auto once = [&](const Axis* a) {
      require(!named.contains(a) && named.size() < max_axes, "an axis is named twice in a tensor");
      named.push_back(a);
      return a;
    };
    for (auto n = count(max_rank); n > 0; --n) {
      Dim d(word());
      require(d.size >= 0 && d.size <= std::int64_t{1} << 44, "a dimension is out of range");
      for (auto k = count(max_nesting); k > 0; --k) d = d / *once(axis());
      t.layout.dims.push_back(d);
    }
    for (auto n = count(max_axes); n > 0; --n) {
      const Axis* a = once(axis());
      t.layout.others.push_back({a, placement()});
    }
    return t;
  }
  void operation() {
    const int number = whole(0, static_cast<int>(std::size(structural)) - 1);
    carried_->words.push_back(text(256));
    const int flags = whole(0, 31);
    Operation o{.name = carried_->words.back()};
    o.updates = (flags & 1) != 0, o.view = (flags & 2) != 0, o.aliases = (flags & 4) != 0, o.source = (flags & 8) != 0, o.computes = (flags & 16) != 0;
    carried_->operations.push_back(o);
    operations_.push_back(number > 0 ? structural[number] : &carried_->operations.back());
  }
  const Operation* operation_of() { return operations_[static_cast<std::size_t>(whole(0, static_cast<int>(operations_.size()) - 1))]; }
  Value value() {
    Value v;
    v.type = type();
    v.kind = enumeration<Kind>(5);
    v.node = index(), v.region = index(), v.member = index(), v.differentiable = flag(), v.keep = enumeration<Keep>(2), v.stack = whole(0, 1 << 20);
    return v;
  }
  Node node() {
    Node n;
    n.operation = operation_of();
    n.operands = list<List<int, max_node_operands>>();
    n.result = index(), n.results = whole(0, max_results);
    n.ints = list<Ints>();
    n.transition.axes = axis_list();
    if (!n.transition.axes.empty()) {
      n.transition.collective = enumeration<Collective>(static_cast<int>(Collective::never) + 1);
      n.transition.from = placement(), n.transition.to = placement();
      n.transition.reduction = enumeration<DType>(4), n.transition.maximum = flag();
    }
    n.phase = enumeration<Phase>(3);
    n.region = index(), n.origin = index(), n.member = index();
    n.flops = word(), n.owns = flag();
    require(n.flops >= 0, "an operation has a negative number of floating point operations");
    return n;
  }
  Origin origin() {
    Origin o;
    o.operation = operation_of();
    o.operands = list<List<int, max_operands>>();
    o.axes = axis_list();
    o.rules = list<List<int, max_axes>>();
    o.source.file = files_[static_cast<std::size_t>(whole(0, static_cast<int>(files_.size()) - 1))];
    o.source.line = whole(0, 1 << 30), o.member = index();
    return o;
  }
  Member member() {
    Member m;
    m.path = Path(text(63));
    m.role = enumeration<Role>(3);
    m.type = type();
    m.value = index(), m.layers = whole(0, 1 << 20), m.updated = index(), m.of = index(), m.initializer.decays = flag();
    return m;
  }

  /// What the passes rely on: every index exists, operands come before what reads them, loops are nested as they are ordered.
  static void check_graph(const Graph& g) {
    const int values = g.values.size(), nodes = g.nodes.size(), regions = g.regions.size(), members = g.members.size();
    const auto exists = [](int i, int n) { require(i >= 0 && i < n, "an index leads nowhere"); };
    const auto may_exist = [&](int i, int n) { require(i >= -1 && i < n, "an index leads nowhere"); };
    exists(0, regions);
    require(g.regions[0].parent == -1 && g.regions[0].loop == 0, "the outermost region is none");
    for (int r = 1; r < regions; ++r) {
      const Region& region = g.regions[r];
      exists(region.parent, r), exists(region.loop, r + 1), exists(region.begin, nodes), exists(region.end, nodes);
      require(g.nodes[region.begin].operation == &operation::begin_region && g.nodes[region.begin].region == r &&
                  g.nodes[region.end].operation == &operation::end_region && g.nodes[region.end].region == r,
              "a region has no beginning or no end");
    }
    int made = 0;
    for (int n = 0; n < nodes; ++n) {
      const Node& node = g.nodes[n];
      exists(node.region, regions), may_exist(node.origin, g.origins.size()), may_exist(node.member, members);
      for (const int o : node.operands) exists(o, values);
      require(node.result >= 0 && node.result + node.results <= values, "an index leads nowhere");
      for (int r = 0; r < node.results; ++r) require(g.values[node.result + r].node == n, "a value has another maker");
      made += node.results;
      const Operation* o = node.operation;
      const bool takes_one = o == &operation::move || o == &operation::carry || o == &operation::carried || o == &operation::layer ||
                             o == &operation::stacked || o->aliases || o->view || !node.transition.axes.empty();
      require(!takes_one || (node.operands.size() >= 1 && node.results == 1), "an operation has too few operands");
      require(!o->updates || node.results <= node.operands.size(), "an operation has too few operands");
      const bool gates = o == &operation::begin_region || o == &operation::end_region;
      require(!gates || (node.ints.size() == 1 && node.ints[0] == node.region && node.region > 0), "a region has no beginning or no end");
    }
    require(made == values, "a value has no maker");
    Vector<int> place;
    place.resize(nodes, -1);
    int region = 0;
    for (int at = 0; at < g.order.size(); ++at) {
      const int n = g.order[at];
      exists(n, nodes);
      const Node& node = g.nodes[n];
      require(place[n] < 0, "a node stands twice in the order");
      place[n] = at;
      if (node.operation == &operation::begin_region) {
        require(g.regions[node.region].parent == region && g.regions[node.region].begin == n, "regions are not nested");
        region = node.region;
      }
      require(node.region == region, "a node stands outside its region");
      if (node.operation == &operation::end_region) require(g.regions[region].end == n, "regions are not nested"), region = g.regions[region].parent;
      for (const int o : node.operands) require(place[g.values[o].node] >= 0 && place[g.values[o].node] < at, "an operand is read before it is made");
    }
    require(region == 0 && g.order.size() == nodes, "nodes are missing in the order");
    double bytes = 0;
    for (const Value& v : g.values) {
      exists(v.node, nodes), exists(v.region, regions), may_exist(v.member, members);
      require(v.region == g.nodes[v.node].region, "a value stands outside its region");
      double size = 8;
      for (const Dim& d : v.type.layout.dims) size *= static_cast<double>(d.size < 1 ? 1 : d.size);
      double times = 2;
      for (int r = v.region; r >= 0; r = g.regions[r].parent) times *= g.regions[r].count + 1;
      bytes += size * times;
    }
    require(bytes < 1e18, "its tensors are too large");
    double flops = 0;
    for (const Node& n : g.nodes) flops += static_cast<double>(n.flops);
    require(flops < 9e18, "its operations are too large");
    for (const Carry& c : g.carries) {
      exists(c.region, regions), exists(c.initial, values), exists(c.inside, values), exists(c.returned, values), exists(c.result, values);
      require(c.region > 0 && g.values[c.inside].region == c.region && g.inside(g.values[c.returned].region, c.region) &&
                  g.maker(c.inside).operation == &operation::carry && g.maker(c.result).operation == &operation::carried &&
                  place[g.values[c.initial].node] < place[g.regions[c.region].begin],
              "a carried value is none");
      require(same_extents(g.values[c.initial].type.layout, g.values[c.inside].type.layout) &&
                  same_extents(g.values[c.returned].type.layout, g.values[c.inside].type.layout),
              "a carried value changes its shape");
    }
    for (const Stack& s : g.stacks) exists(s.region, regions), exists(s.inside, values), exists(s.outside, values);
    for (const Origin& o : g.origins) {
      for (const int v : o.operands) exists(v, values);
      may_exist(o.member, members);
      require(o.rules.size() == o.axes.size(), "an origin has axes without rules");
      for (const int r : o.rules) require(r >= 0 && r <= 5, "there is no such rule");
    }
    for (const Member& m : g.members) exists(m.value, values), may_exist(m.updated, values), may_exist(m.of, members);
    for (const int v : g.outputs) exists(v, values);
    may_exist(g.scalar_value, values), may_exist(g.commit, values), may_exist(g.misused, members);
  }

  std::span<const std::int64_t> words_;
  std::size_t at_ = 0;
  Carried* carried_ = nullptr;
  std::vector<const Operation*> operations_{};
  std::vector<const char*> files_{};
};

/// The programs and meshes that a file carries.
struct Found {
  std::vector<std::unique_ptr<Carried>> programs{};
  std::vector<CarriedMesh> meshes{};
};

/// Searches the bytes of an object, a library or a program. Copies of one program count once. Throws Damaged.
inline Found find(std::string_view bytes) {
  Found found;
  const auto is = [&](std::size_t at, std::int64_t w) { return std::memcmp(bytes.data() + at, &w, sizeof w) == 0; };
  for (std::size_t at = 0; at + 8 * header <= bytes.size();) {
    const void* next = std::memchr(bytes.data() + at, static_cast<int>(magic & 0xff), bytes.size() - at);
    if (next == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char*>(next) - bytes.data());
    if (at + 8 * header > bytes.size()) break;
    const bool program = is(at + 8, program_magic), mesh = is(at + 8, mesh_magic);
    if (!is(at, magic) || (!program && !mesh)) {
      ++at;
      continue;
    }
    std::int64_t length = 0;
    std::memcpy(&length, bytes.data() + at + 24, sizeof length);
    if (length < header || length > static_cast<std::int64_t>((bytes.size() - at) / 8)) throw Damaged("it is truncated, or a length in it is wrong");
    std::vector<std::int64_t> words(static_cast<std::size_t>(length));
    std::memcpy(words.data(), bytes.data() + at, 8 * words.size());
    Reader reader(words);
    if (mesh) {
      found.meshes.push_back(reader.mesh());
    } else {
      auto carried = reader.program();
      bool known = false;
      for (const auto& p : found.programs) known = known || p->checksum == carried->checksum;
      if (!known) found.programs.push_back(std::move(carried));
    }
    at += 8 * words.size();
  }
  return found;
}

/// The plan of a carried program on a mesh of its axes, by the same passes that the compiler ran; the program outlives it. Throws MeshRefused.
inline OwnedPlan derive(const Carried& program, const Mesh& mesh, std::initializer_list<GraphView> beside = {}) {
  auto planned = std::make_shared<Planned>();
  planned->graph = program.graph;
  const Fault fault = check(planned->graph, mesh, beside);
  if (fault.refusal) throw MeshRefused(fault.refusal.reason, explain(fault, planned->graph, mesh));
  plan_into(*planned, planned->graph, mesh);
  return OwnedPlan(std::move(planned), mesh);
}

}  // namespace parallel::object
