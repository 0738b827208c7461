// What an object file carries of every program that is planned in it: the differentiated graph as plain words, names
// copied in, so that tools/plan can run the same passes on it for any mesh, and none of it is executed. Nothing in it
// is an address.
#pragma once
#include <parallel/plan/constant.hpp>
#include <parallel/plan/demands.hpp>

namespace parallel {

/// Words of 64 bits, in the machine's order of bytes. A file is searched for the first two.
namespace object {
inline constexpr std::int64_t magic = 0x6c656c6c61726170;          ///< "parallel", as a little-endian machine writes it
inline constexpr std::int64_t program_magic = 0x6d6172676f72703a;  ///< ":program"
inline constexpr std::int64_t mesh_magic = 0x3a6873656d3a3a3a;     ///< ":::mesh:"
inline constexpr std::int64_t version = 7;
/// magic, magic, version, words in all, checksum of the program, words up to its end, checksum of the rest: lines and
/// spellings of types, which differ from compiler to compiler. All before is the same from all of them, and it alone is
/// hashed and compared.
inline constexpr int header = 7;

/// FNV-1a over words.
inline constexpr std::uint64_t no_words = 0xcbf29ce484222325;
constexpr std::uint64_t mixed(std::uint64_t hash, std::int64_t w) {
  return (hash ^ static_cast<std::uint64_t>(w)) * 0x100000001b3;
}
constexpr std::int64_t checksum(std::span<const std::int64_t> words) {
  std::uint64_t hash = no_words;
  for (const std::int64_t w : words) hash = mixed(hash, w);
  return static_cast<std::int64_t>(hash);
}

/// How a type is spelled: all three compilers say "... [with T = Name; ...]" or "... [T = Name]".
template <class T>
constexpr std::string_view type_name() {
  const std::string_view whole = __PRETTY_FUNCTION__;
  const std::size_t begin = whole.find("T = ") + 4;
  std::size_t end = begin;
  for (int depth = 0; end < whole.size(); ++end) {
    if (depth == 0 && (whole[end] == ';' || whole[end] == ']')) break;
    depth += whole[end] == '<' || whole[end] == '{' || whole[end] == '[' ? 1 : 0;
    depth -= whole[end] == '>' || whole[end] == '}' || whole[end] == ']' ? 1 : 0;
  }
  std::string_view name = whole.substr(begin, end - begin);
  if (name.starts_with("parallel::")) name.remove_prefix(10);
  return name;
}

/// Writes words; a template because clang 14 knows no other whose functions call templates, in a constant expression.
template <class Program>
class Writer {
 public:
  Vector<std::int64_t> words{};

  constexpr Writer() = default;
  /// Of a graph that was built otherwise, at start-up.
  constexpr explicit Writer(const GraphView& graph) : g_(graph) {}

  /// A program. The reader, read_object.hpp, reads field by field in the same order.
  constexpr void program() {
    begin(program_magic);
    gather();
    put(is_trained<Program>);
    put(Program::micro_batches);
    put(axes_.size());
    for (const Axis* a : axes_) text(a->text());
    put(operations_.size());
    for (const Operation* o : operations_) operation(*o);
    stages();
    for (const Value& v : counted(g_.values)) value(v);
    for (const Node& n : counted(g_.nodes)) node(n);
    list(g_.order);
    for (const Region& r : counted(g_.regions)) {
      put(static_cast<int>(r.kind) + 4 * r.reversed + 8 * r.staged, r.parent, r.loop, r.begin);
      put(r.end, -1, -1, -1);
      put(r.count);
    }
    for (const Carry& c : counted(g_.carries)) {
      put(c.region, c.initial, c.inside, c.returned);
      put(c.result, -1, -1, -1);
    }
    for (const Stack& s : counted(g_.stacks)) put(s.region, s.inside, s.outside, -1);
    for (const Origin& o : counted(g_.origins)) origin(o);
    for (const Member& m : counted(g_.members)) member(m);
    for (const Name& s : counted(g_.scalars)) text(g_.text(s));
    put(g_.scalar_value, g_.commit, g_.misused, -1);
    list(g_.outputs);
    constexpr Demands demands = demands_of<Program>();
    put(demands.strict);
    put(demands.memory);
    put(demands.on.size());
    for (int i = 0; i < demands.on.size(); ++i) {
      put(axis(demands.on[i]));
      put(demands.sent[i]);
    }
    end_of_program();
    text(type_name<typename Program::Model>());
    text(is_trained<Program> ? type_name<typename Program::Optimizer>() : "");
    put(files_.size());
    for (const char* f : files_) text(f);
    for (const Origin& o : g_.origins) {
      put(file(o.source.file), -1, -1, -1);
      put(o.source.line);
    }
    end();
  }
  /// A mesh that the compiler planned a program for.
  constexpr void mesh(const Mesh& mesh, std::int64_t checksum_of_program) {
    begin(mesh_magic);
    put(checksum_of_program);
    put(mesh.count);
    for (int i = 0; i < mesh.count; ++i) {
      text(mesh.axes[i].axis->text());
      put(mesh.axes[i].size);
    }
    put(mesh.here);
    end_of_program();
    end();
  }

 private:
  constexpr void begin(std::int64_t what) {
    for (const std::int64_t w : {magic, what, version}) words.push_back(w);
    words.resize(header);
  }
  constexpr void end_of_program() {
    words[4] = static_cast<std::int64_t>(hash_);
    words[5] = words.size();
    hash_ = no_words;
  }
  constexpr void end() {
    words[3] = words.size();
    words[6] = static_cast<std::int64_t>(hash_);
  }
  constexpr void put(std::int64_t w) {
    words.push_back(w);
    hash_ = mixed(hash_, w);
  }
  /// Four small numbers from -1 on, indices into what a reader takes no more than 65,534 of: few words are few steps of
  /// the compiler.
  constexpr void put(int a, int b, int c, int d) {
    put(static_cast<std::int64_t>(static_cast<std::uint64_t>(a + 1) | static_cast<std::uint64_t>(b + 1) << 16 |
                                  static_cast<std::uint64_t>(c + 1) << 32 | static_cast<std::uint64_t>(d + 1) << 48));
  }
  /// The number of characters, then eight of them a word.
  constexpr void text(std::string_view t) {
    put(static_cast<std::int64_t>(t.size()));
    std::uint64_t word = 0;
    int filled = 0;
    for (const char c : t) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
      if (++filled == 8) {
        put(static_cast<std::int64_t>(word));
        word = 0;
        filled = 0;
      }
    }
    if (filled > 0) put(static_cast<std::int64_t>(word));
  }
  template <class Items>
  constexpr const Items& counted(const Items& items) {
    put(static_cast<std::int64_t>(items.size()));
    return items;
  }
  /// How many, then four of them a word.
  template <class Items>
  constexpr void list(const Items& items) {
    const int n = static_cast<int>(counted(items).size());
    const auto at = [&](int i) { return i < n ? static_cast<int>(items[static_cast<decltype(items.size())>(i)]) : -1; };
    for (int i = 0; i < n; i += 4) put(at(i), at(i + 1), at(i + 2), at(i + 3));
  }

  template <class T>
  static constexpr int place(Vector<const T*>& known, const T* what) {
    for (int i = 0; i < known.size(); ++i)
      if (known[i] == what) return i;
    known.push_back(what);
    return known.size() - 1;
  }
  /// Files are told apart by their names: addresses of equal literals may differ.
  constexpr int file(const char* name) {
    for (int i = files_.size() - 1; i >= 0; --i)
      if (std::string_view(files_[i]) == name) return i;
    files_.push_back(name);
    return files_.size() - 1;
  }
  constexpr void gather() {
    AxisList axes;
    for (const Value& v : g_.values) v.type.layout.collect(axes);
    for (const Axis* a : axes) axes_.push_back(a);
    for (const Node& n : g_.nodes) place(operations_, n.operation);
    for (const Origin& o : g_.origins) {
      place(operations_, o.operation);
      file(o.source.file);
    }
  }
  constexpr int axis(const Axis* a) { return place(axes_, a); }
  /// The axis of the stages and their schedule, of which a reader finds by its name only what the library ships: tasks
  /// are a function.
  constexpr void stages() {
    if (g_.stages == nullptr) return put(0);
    const auto shipped = find_schedule(g_.schedule->name, g_.schedule->chunks);
    put(g_.balanced ? 2 : 1);
    put(axis(g_.stages), shipped && shipped->tasks == g_.schedule->tasks, -1, -1);
    put(g_.schedule->chunks);
    text(g_.schedule->name);
  }
  constexpr void axis_list(const AxisList& l) {
    for (const Axis* a : counted(l)) put(axis(a));
  }
  constexpr void placement(int axis, const Placement& p) {
    put(axis, static_cast<int>(p.kind), p.dim, -1);
    if (p.kind == PlacementKind::at) put(static_cast<std::int64_t>(p.coordinates));
  }
  constexpr void type(const Type& t, Kind kind, int flags) {
    const Layout& l = t.layout;
    put(static_cast<int>(t.dtype) + 4 * static_cast<int>(kind), l.dims.count, l.others.count, flags);
    for (const Dim& d : l.dims) {
      put(d.size);
      put(d.count, d.count > 0 ? axis(d.axes[0]) : -1, d.count > 1 ? axis(d.axes[1]) : -1,
          d.count > 2 ? axis(d.axes[2]) : -1);
    }
    for (const Placed& p : l.others) placement(axis(p.axis), p.placement);
  }
  constexpr void operation(const Operation& o) {
    int rates = static_cast<int>(o.rate) + 4 * o.joined.size(), digit = 16;
    for (const Rate r : o.joined) {
      rates += digit * static_cast<int>(r);
      digit *= 4;
    }
    put(static_cast<int>(o.structural),
        o.updates + 2 * o.view + 4 * o.aliases + 8 * o.source + 16 * o.computes + 32 * o.reads_a_part, rates, -1);
    text(o.name);
  }
  constexpr void value(const Value& v) {
    type(v.type, v.kind, v.differentiable + 2 * static_cast<int>(v.keep) + 4 * v.passed + 8 * (v.stack > 0));
    put(v.node, v.region, v.member, -1);
    if (v.stack > 0) put(v.stack);
  }
  constexpr void node(const Node& n) {
    const Transition& t = n.transition;
    put(place(operations_, n.operation), static_cast<int>(n.phase) + 4 * n.owns + 8 * n.shares + 16 * n.joined,
        n.region, n.origin);
    put(n.member, n.result, n.results, t.axes.count);
    put(n.flops);
    list(n.operands);
    for (const std::int64_t i : counted(n.ints)) put(i);
    if (t.axes.empty()) return;
    put(static_cast<int>(t.collective), static_cast<int>(t.reduction), t.maximum, t.along + 1);
    for (const Axis* a : t.axes) put(axis(a));
    placement(-1, t.from);
    placement(-1, t.to);
    placement(-1, t.among);
  }
  constexpr void origin(const Origin& o) {
    put(place(operations_, o.operation), -1, o.member, o.result);
    list(o.operands);
    axis_list(o.axes);
    list(o.rules);
  }
  constexpr void member(const Member& m) {
    text(g_.path(m));
    type(m.type, Kind::data, static_cast<int>(m.role) + 4 * m.initializer.decays);
    put(m.value, m.updated, m.of, -1);
    put(m.layers);
  }

  GraphView g_ = GraphView(constants::graph<Program>);
  Vector<const Axis*> axes_{};
  Vector<const Operation*> operations_{};
  Vector<const char*> files_{};
  std::uint64_t hash_ = no_words;
};

template <class Program>
constexpr Vector<std::int64_t> written(const GraphView& graph) {
  Writer<Program> writer(graph);
  writer.program();
  return writer.words;
}
template <class Program>
constexpr Vector<std::int64_t> written() {
  return written<Program>(GraphView(constants::graph<Program>));
}
template <int n>
struct Words {
  std::int64_t words[n];
};
template <int n>
constexpr Words<n> frozen(const Vector<std::int64_t>& written) {
  Words<n> result{};
  for (int i = 0; i < n; ++i) result.words[i] = written[i];
  return result;
}
/// Words in more room than most need, so that the compiler writes them once; of more there is the size alone.
struct RoomyWords {
  static constexpr int most = 16384;
  int size = 0;
  std::int64_t words[most]{};
};
constexpr RoomyWords in_room(const Vector<std::int64_t>& written) {
  RoomyWords result{.size = written.size()};
  for (int i = 0; result.size <= result.most && i < result.size; ++i) result.words[i] = written[i];
  return result;
}
template <class Program>
inline constexpr RoomyWords roomy = in_room(written<Program>());
template <class Program>
inline constexpr int size = roomy<Program>.size;
template <class Program>
constexpr Words<size<Program>> words() {
  if constexpr (size < Program >> RoomyWords::most) return frozen<size<Program>>(written<Program>());
  Words<size<Program>> result{};
  for (int i = 0; i < size<Program>; ++i) result.words[i] = roomy<Program>.words[i];
  return result;
}
/// The words of a program. Whoever names them has them in his object file.
template <class Program>
[[gnu::used]] inline constexpr Words<size<Program>> program = words<Program>();

template <class Program>
constexpr Vector<std::int64_t> written(const Mesh& mesh) {
  Writer<Program> writer;
  writer.mesh(mesh, program<Program>.words[4]);
  return writer.words;
}
template <class Program, Mesh m>
inline constexpr int size_of_mesh = written<Program>(m).size();
template <class Program, Mesh m>
[[gnu::used]] inline constexpr Words<size_of_mesh<Program, m>> mesh =
    frozen<size_of_mesh<Program, m>>(written<Program>(m));
}  // namespace object

}  // namespace parallel
