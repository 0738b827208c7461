// Reads what object.hpp has written into an object file. The words may come from anybody: every length, index and
// enumeration is checked, and that the passes can work on the graph; nothing of it is executed.
#pragma once
#include <array>
#include <memory>

#include <parallel/plan/carried.hpp>
#include <parallel/plan/portable_name.hpp>
#include <parallel/plan/sound_graph.hpp>

namespace parallel::object {

class Reader {
 public:
  explicit Reader(std::span<const std::int64_t> words) : words_(words) {}

  std::unique_ptr<Carried> program() {
    begin();
    auto result = std::make_unique<Carried>();
    Carried& c = *result;
    carried_ = &c;
    c.checksum = words_[4];
    const bool trained = whole(0, 1) == 1;
    const int micro_batches = iterations(1);
    for (auto n = count(most_nodes); n > 0; --n) {
      const std::string& name = c.words.emplace_back(text());
      require(!name.empty() && c.axis(name) == nullptr, "an axis has no name, or that of another");
      c.axes.push_back({name.c_str()});
    }
    for (auto n = count(most_nodes); n > 0; --n) operation();
    Graph& g = c.graph;
    stages();
    for (auto n = count(most_values); n > 0; --n) g.values.push_back(value());
    for (auto n = count(most_nodes); n > 0; --n) g.nodes.push_back(node());
    for (const int n : list<std::vector<int>>(most_nodes)) g.order.push_back(n);
    for (auto n = count(most_nodes); n > 0; --n) {
      const Quad a = quad(), b = quad();
      require(a[0] >= 0 && a[0] < 16 && a[0] % 4 < 3, "there is no such kind of region");
      g.regions.push_back(
          {static_cast<RegionKind>(a[0] % 4), a[1], iterations(1), (a[0] & 4) != 0, a[2], a[3], b[0], (a[0] & 8) != 0});
    }
    for (auto n = count(most_nodes); n > 0; --n) {
      const Quad a = quad(), b = quad();
      g.carries.push_back({a[0], a[1], a[2], a[3], b[0]});
    }
    for (auto n = count(most_nodes); n > 0; --n) {
      const Quad a = quad();
      g.stacks.push_back({a[0], a[1], a[2]});
    }
    for (auto n = count(most_nodes); n > 0; --n) g.origins.push_back(origin());
    for (auto n = count(most_nodes); n > 0; --n) g.members.push_back(member());
    for (auto n = count(1024); n > 0; --n) g.scalars.push_back(name());
    const Quad last = quad();
    g.scalar_value = last[0];
    g.commit = last[1];
    g.misused = last[2];
    g.outputs = list<Vector<int>>(most_values);
    c.demands.strict = whole(0, 1) == 1;
    c.demands.memory = word();
    for (auto n = count(max_axes); n > 0; --n) {
      c.demands.on.push_back(axis(whole(0, most_nodes)));
      c.demands.sent.push_back(word());
    }
    require(at_ == end_of_program(), "words are left over");
    const std::string model = portable(text()), optimizer = portable(text());
    require(trained == !optimizer.empty(), "it is trained and names no optimizer, or names one and is not");
    for (auto n = count(most_nodes); n > 0; --n)
      files_.push_back(c.words.emplace_back(in_one_line(characters())).c_str());
    for (Origin& o : g.origins) o.source = source();
    require(at_ == words_.size(), "words are left over");
    check_graph(g);
    c.name = optimizer.empty() ? "Evaluation<" + model + ">" : "Training<" + model + ", " + optimizer + ">";
    if (micro_batches > 1) c.name = "Accumulate<" + std::to_string(micro_batches) + ", " + c.name + ">";
    if (g.stages != nullptr && c.schedule.name != schedules::one_forward_one_backward.name)
      c.name = "Pipelined<" + parallel::text(c.schedule) + ", " + c.name + ">";
    if (g.balanced) c.name = "Balanced<" + c.name + ">";
    if (c.demands.strict) c.name = "Strict<" + c.name + ">";
    if (c.demands.memory >= 0 || !c.demands.on.empty()) c.name = "Within<" + c.name + ">";
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
      std::string name = text();
      result.axes.emplace_back(std::move(name), whole(1, 1 << 20));
    }
    result.here = whole(0, 1 << 20);
    require(at_ == words_.size() && at_ == end_of_program(), "words are left over");
    return result;
  }

 private:
  void begin() {
    require(words_.size() >= static_cast<std::size_t>(header), "it ends within its header");
    require(words_[2] == version, "it was written by another version of the library");
    require(words_[3] == static_cast<std::int64_t>(words_.size()), "its length is wrong");
    require(words_[5] >= header && words_[5] <= words_[3], "its length is wrong");
    require(words_[4] == object::checksum(words_.first(end_of_program()).subspan(header)) &&
                words_[6] == object::checksum(words_.subspan(end_of_program())),
            "its checksum is wrong");
    at_ = header;
  }
  std::size_t end_of_program() const { return static_cast<std::size_t>(words_[5]); }
  std::int64_t word() {
    require(at_ < words_.size(), "it ends too early");
    return words_[at_++];
  }
  int whole(std::int64_t least, std::int64_t most) {
    const std::int64_t w = word();
    require(w >= least && w <= most, "a number is out of range");
    return static_cast<int>(w);
  }
  int iterations(std::int64_t least) {
    const std::int64_t w = word();
    require(w <= most_iterations, "it has more than 32,000 layers, or micro-batches");
    require(w >= least, "a number is out of range");
    return static_cast<int>(w);
  }
  using Quad = std::array<int, 4>;
  Quad quad() {
    const auto w = static_cast<std::uint64_t>(word());
    Quad result{};
    for (std::size_t i = 0; i < 4; ++i) result[i] = static_cast<int>(w >> (16 * i) & 0xffff) - 1;
    return result;
  }
  int count(int most) { return whole(0, most); }
  template <class E>
  static E enumeration(int value, int values) {
    require(value >= 0 && value < values, "an enumeration has no such value");
    return static_cast<E>(value);
  }
  std::string characters() {
    const std::int64_t size = word();
    require(size >= 0 && size <= most_of_name, "a name has more than 65,535 characters");
    std::string result(static_cast<std::size_t>(size), '\0');
    for (std::size_t i = 0; i < result.size(); i += 8) {
      const std::int64_t w = word();
      for (std::size_t k = i; k < result.size() && k < i + 8; ++k)
        result[k] = static_cast<char>(static_cast<std::uint64_t>(w) >> (8 * (k - i)) & 0xff);
    }
    return result;
  }
  std::string text() {
    std::string result = characters();
    require(result == in_one_line(result), "a name has a control character");
    return result;
  }
  Name name() {
    const std::string words = text();
    return carried_->graph.name({}, {words});
  }
  template <class L>
  L list(int most) {
    L result;
    const int n = count(most);
    for (int i = 0; i < n;)
      for (const Quad four = quad(); const int x : four) {
        if (i++ < n) result.push_back(x);
      }
    return result;
  }
  const Axis* axis(int i) {
    require(i >= 0 && i < static_cast<int>(carried_->axes.size()), "an index leads nowhere");
    return &carried_->axes[static_cast<std::size_t>(i)];
  }
  AxisList axis_list(int n) {
    AxisList result;
    require(n >= 0 && n <= max_axes, "a number is out of range");
    while (n-- > 0) {
      const Axis* a = axis(whole(0, most_nodes));
      require(!result.contains(a), "an axis is named twice");
      result.push_back(a);
    }
    return result;
  }
  /// The axis' number with its placement.
  std::pair<int, Placement> placement() {
    const Quad q = quad();
    Placement p;
    p.kind = enumeration<PlacementKind>(q[1], 5);
    require(q[2] >= -1 && q[2] <= max_rank, "a number is out of range");
    p.dim = q[2];
    if (p.kind == PlacementKind::at) p.coordinates = static_cast<std::uint64_t>(word());
    return {q[0], p};
  }
  struct Typed {
    Type type{};
    Kind kind{};
    int flags = 0;
  };
  Typed type() {
    const Quad q = quad();
    Typed t;
    t.type.dtype = enumeration<DType>(q[0] & 3, 4);
    t.kind = enumeration<Kind>(q[0] >> 2, 5);
    t.flags = q[3];
    require(q[1] >= 0 && q[1] <= max_rank && q[2] >= 0 && q[2] <= max_axes && q[3] >= 0 && q[3] < 16,
            "a number is out of range");
    AxisList named;
    const auto once = [&](const Axis* a) {
      require(!named.contains(a) && named.size() < max_axes, "an axis is named twice in a tensor");
      named.push_back(a);
      return a;
    };
    for (int n = 0; n < q[1]; ++n) {
      Dim d(word());
      require(d.size >= 1 && d.size <= std::int64_t{1} << 44, "a dimension is out of range");
      const Quad by = quad();
      require(by[0] >= 0 && by[0] <= max_nesting, "a number is out of range");
      for (int k = 0; k < by[0]; ++k) d = d / *once(axis(by[static_cast<std::size_t>(k) + 1]));
      t.type.layout.dims.push_back(d);
    }
    for (int n = 0; n < q[2]; ++n) {
      const auto [a, p] = placement();
      t.type.layout.others.push_back({once(axis(a)), p});
    }
    return t;
  }
  void stages() {
    Carried& c = *carried_;
    c.graph.schedule = &c.schedule;
    const int cut = whole(0, 2);  // not at all, evenly, by cost
    if (cut == 0) return;
    c.graph.balanced = cut == 2;
    const Quad q = quad();
    c.graph.stages = axis(q[0]);
    require(q[1] == 0 || q[1] == 1, "a number is out of range");
    c.graph.chunks = whole(1, most_chunks);
    c.words.push_back(text());
    const auto shipped = find_schedule(c.words.back(), c.graph.chunks);
    require(q[1] == 0 || shipped, "there is no such schedule");
    c.schedule = q[1] == 1 ? *shipped : Schedule{.name = c.words.back(), .chunks = c.graph.chunks};
  }
  void operation() {
    const Quad q = quad();
    const int number = q[0], flags = q[1], rates = q[2];
    require(number >= 0 && number < static_cast<int>(std::size(operation::structural)) && flags >= 0 && flags < 64 &&
                rates >= 0 && rates < 1024,
            "a number is out of range");
    carried_->words.push_back(text());
    Operation o{.name = carried_->words.back()};
    o.updates = (flags & 1) != 0;
    o.view = (flags & 2) != 0;
    o.aliases = (flags & 4) != 0;
    o.source = (flags & 8) != 0;
    o.computes = (flags & 16) != 0;
    o.reads_a_part = (flags & 32) != 0;
    o.rate = static_cast<Rate>(rates % 4);
    for (int part = 0; part < rates / 4 % 4; ++part)
      o.joined.push_back(static_cast<Rate>((rates >> (4 + 2 * part)) % 4));
    carried_->operations.push_back(o);
    operations_.push_back(number > 0 ? operation::structural[number] : &carried_->operations.back());
  }
  const Operation* operation_of(int i) {
    require(i >= 0 && i < static_cast<int>(operations_.size()), "an index leads nowhere");
    return operations_[static_cast<std::size_t>(i)];
  }
  Value value() {
    const Typed t = type();
    const Quad q = quad();
    Value v;
    v.type = t.type;
    v.kind = t.kind;
    v.differentiable = (t.flags & 1) != 0;
    v.keep = (t.flags & 2) != 0 ? Keep::recomputed : Keep::saved;
    v.passed = (t.flags & 4) != 0;
    v.node = q[0];
    v.region = q[1];
    v.member = q[2];
    if ((t.flags & 8) != 0) v.stack = iterations(1);
    return v;
  }
  Node node() {
    const Quad a = quad(), b = quad();
    Node n;
    n.operation = operation_of(a[0]);
    require(a[1] >= 0 && a[1] < 16 * max_results, "a number is out of range");
    n.phase = enumeration<Phase>(a[1] & 3, 3);
    n.owns = (a[1] & 4) != 0;
    n.shares = (a[1] & 8) != 0;
    n.joined = a[1] >> 4;
    n.region = a[2];
    n.origin = a[3];
    n.member = b[0];
    n.result = b[1];
    n.results = b[2];
    require(n.results >= 0 && n.results <= max_results, "a number is out of range");
    n.flops = word();
    require(n.flops >= 0, "an operation has a negative number of floating point operations");
    n.operands = list<List<int, max_node_operands>>(max_node_operands);
    for (auto i = count(static_cast<int>(std::size(n.ints.items))); i > 0; --i) n.ints.push_back(word());
    if (b[3] == 0) return n;
    const Quad t = quad();
    n.transition.collective = enumeration<Collective>(t[0], static_cast<int>(Collective::never) + 1);
    n.transition.reduction = enumeration<DType>(t[1], 4);
    n.transition.maximum = t[2] == 1;
    n.transition.axes = axis_list(b[3]);
    n.transition.from = placement().second;
    n.transition.to = placement().second;
    n.transition.among = placement().second;
    require(t[3] >= 0 && t[3] <= 2, "a number is out of range");
    n.transition.along = t[3] - 1;
    if (n.transition.axes.contains(carried_->graph.stages)) n.transition.chunks = carried_->graph.chunks;
    return n;
  }
  Origin origin() {
    const Quad q = quad();
    Origin o;
    o.operation = operation_of(q[0]);
    o.member = q[2];
    o.result = q[3];
    o.operands = list<List<int, max_operands>>(max_operands);
    o.axes = axis_list(count(max_axes));
    o.rules = list<List<int, max_axes>>(max_axes);
    return o;
  }
  Source source() {
    const int file = quad()[0];
    require(file >= 0 && file < static_cast<int>(files_.size()), "an index leads nowhere");
    return {files_[static_cast<std::size_t>(file)], whole(0, 1 << 30)};
  }
  Member member() {
    Member m;
    m.path = name();
    const Typed t = type();
    require(t.flags < 8, "a number is out of range");
    m.type = t.type;
    m.role = enumeration<Role>(t.flags & 3, 3);
    m.initializer.decays = (t.flags & 4) != 0;
    const Quad q = quad();
    m.value = q[0];
    m.updated = q[1];
    m.of = q[2];
    m.layers = iterations(0);
    return m;
  }

  std::span<const std::int64_t> words_;
  std::size_t at_ = 0;
  Carried* carried_ = nullptr;
  std::vector<const Operation*> operations_{};
  std::vector<const char*> files_{};
};

}  // namespace parallel::object
