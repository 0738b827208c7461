// What an object file carries of every program that is planned in it: the differentiated graph as plain words, names
// copied in, so that tools/plan can run the same passes on it for any mesh, and none of it is executed. Nothing in it
// is an address.
#pragma once
#include <bit>

#include <parallel/plan/constant.hpp>
#include <parallel/plan/demands.hpp>

namespace parallel {

/// Words of 64 bits, in the machine's order of bytes. A file is searched for the first two.
namespace object {
inline constexpr std::int64_t magic = 0x6c656c6c61726170;          ///< "parallel", as a little-endian machine writes it
inline constexpr std::int64_t program_magic = 0x6d6172676f72703a;  ///< ":program"
inline constexpr std::int64_t mesh_magic = 0x3a6873656d3a3a3a;     ///< ":::mesh:"
inline constexpr std::int64_t version = 8;
/// magic, magic, version, words in all, checksum of the program, words up to its end, checksum of the rest: lines and
/// spellings of types, which differ from compiler to compiler. All before is the same from all of them, and it alone is
/// hashed and compared.
inline constexpr int header = 7;

/// Stands for a number that has a word of its own.
inline constexpr std::int64_t mark = 0xffff;

/// FNV-1a over words.
constexpr std::int64_t checksum(std::span<const std::int64_t> words) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const std::int64_t* w = words.data();  // no iterators: few calls are few steps of the compiler
  for (std::size_t i = 0; i < words.size(); ++i) hash = (hash ^ static_cast<std::uint64_t>(w[i])) * 0x100000001b3;
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

template <class T>
inline constexpr bool is_index = false;
template <class Record>
inline constexpr bool is_index<IndexOf<Record>> = true;
template <class T>
concept Number = std::is_arithmetic_v<std::remove_const_t<T>> || std::is_enum_v<std::remove_const_t<T>> ||
    is_index<std::remove_const_t<T>>;
/// Items one behind the other, in whatever keeps them.
template <class T>
concept ListLike = requires(T& list) {
  *list.begin();
  list.size();
};

/// The words of a record are those of its members in their order, of a list how many there are and then each. `way` is
/// a writer or a reader: its `field` takes numbers, texts and addresses, and comes back here with all else.
template <class Way, class T>
constexpr void words_of(Way& way, T& t) {
  using Field = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Field, Placement>) {
    way.field(t.kind);
    way.field(t.dim);
    if (t.kind == PlacementKind::at) way.field(t.coordinates);
  } else if constexpr (ListLike<T>) {
    if constexpr (!requires { std::tuple_size<Field>::value; }) way.count(t);
    for (auto& item : t) way.field(item);
  } else {
    if constexpr (std::is_same_v<Field, Transition>)
      if (!way.there(!t.axes.empty())) return;  // most nodes move nothing
    meta::with_members(t, [&](auto&... members) { (way.field(members), ...); });
  }
}
/// A graph's: what it says beside its lists, then these.
template <class Way, class G>
constexpr void words_of_graph(Way& way, G& graph) {
  way.field(graph.base());
  each_list(
      [&](auto& list) {
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(*list.begin())>, char>) way.field(list);
      },
      graph);
}
/// What passes ask of an operation; the rest of it are functions.
template <class Way, class O>
constexpr void words_of_operation(Way& way, O& o) {
  const auto all = [&](auto&... fields) { (way.field(fields), ...); };
  all(o.structural, o.updates, o.view, o.aliases, o.source, o.computes, o.remembers, o.reads_a_part, o.rate, o.joined,
      o.name);
}

/// Writes words; a template because clang 14 knows no other whose functions call templates, in a constant expression.
template <class Program>
class Writer {
 public:
  Vector<std::int64_t> words{};

  constexpr Writer() = default;
  /// Of a graph that was built otherwise, at start-up.
  constexpr explicit Writer(const GraphView& graph) : g_(graph) {}

  /// A program.
  constexpr void program() {
    begin(program_magic);
    gather();
    number(is_trained<Program>);
    number(Program::micro_batches);
    number(axes_.size());
    for (const Axis* a : axes_) text(a->text());
    number(operations_.size());
    for (const Operation* o : operations_) words_of_operation(*this, *o);
    words_of_graph(*this, static_cast<const GraphView&>(g_));
    constexpr Demands demands = demands_of<Program>();
    field(demands);
    end_of_program();
    text(type_name<typename Program::Model>());
    text(is_trained<Program> ? type_name<typename Program::Optimizer>() : "");
    number(files_.size());
    for (const char* f : files_) text(f);
    for (const Origin& o : g_.origins) {
      number(file(o.source.file));
      number(o.source.line);
    }
    end();
  }
  /// A mesh that the compiler planned a program for.
  constexpr void mesh(const Mesh& mesh, std::int64_t checksum_of_program) {
    begin(mesh_magic);
    number(checksum_of_program);
    number(mesh.count);
    for (int i = 0; i < mesh.count; ++i) {
      text(mesh.axes[i].axis->text());
      number(mesh.axes[i].size);
    }
    number(mesh.here);
    end_of_program();
    end();
  }

  // What words_of asks for, in few statements: clang counts them.
  template <Number T>
  constexpr void field(T& value) {
    number(static_cast<std::int64_t>(value));
  }
  constexpr void field(const double& value) { number(std::bit_cast<std::int64_t>(value)); }
  template <class T>
  constexpr void field(T& t) {
    words_of(*this, t);
  }
  constexpr void field(const std::string_view& t) { text(t); }
  constexpr void field(const Name& name) { text(g_.text(name)); }
  constexpr void field(const Source&) {}  // stands behind the program: compilers differ in it
  constexpr void field(const Dim& d) {
    number(d.size);
    number(d.count);
    for (int i = 0; i < d.count; ++i) number(place(axes_, d.axes[i]));
  }
  constexpr void field(const Axis* const& a) { number(a == nullptr ? -1 : place(axes_, a)); }
  constexpr void field(const Operation* const& o) { number(place(operations_, o)); }
  /// A reader finds by its name only what the library ships: tasks are a function.
  constexpr void field(const Schedule* const& s) {
    if (!there(s != nullptr)) return;
    const auto shipped = find_schedule(s->name, s->chunks);
    number(shipped && shipped->tasks == s->tasks);
    number(s->chunks);
    text(s->name);
  }
  constexpr void count(const auto& list) { number(static_cast<std::int64_t>(list.size())); }
  constexpr bool there(bool is) {
    number(is);
    return is;
  }

 private:
  constexpr void begin(std::int64_t what) {
    for (const std::int64_t w : {magic, what, version}) words.push_back(w);
    words.resize(header);
  }
  constexpr void end_of_program() {
    words[4] = checksum({words.data() + header, static_cast<std::size_t>(words.size() - header)});
    words[5] = words.size();
    filled_ = 64;
  }
  constexpr void end() {
    const auto program = static_cast<int>(words[5]);
    words[3] = words.size();
    words[6] = checksum({words.data() + program, static_cast<std::size_t>(words.size() - program)});
  }
  /// Numbers from -1 to 65,533, as most are, stand four in a word; others in a word of their own behind a mark.
  constexpr void number(std::int64_t n) {
    const bool small = n >= -1 && n < mark - 1;
    if (filled_ == 64) begin_quarters();
    words[quarters_] |= static_cast<std::int64_t>(static_cast<std::uint64_t>(small ? n + 1 : mark) << filled_);
    filled_ += 16;
    if (!small) words.push_back(n);
  }
  constexpr void begin_quarters() {
    quarters_ = words.size();
    words.push_back(0);
    filled_ = 0;
  }
  /// The number of characters, then eight of them a word.
  constexpr void text(std::string_view t) {
    number(static_cast<std::int64_t>(t.size()));
    std::uint64_t word = 0;
    int filled = 0;
    for (const char c : t) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(c)) << (8 * filled);
      if (++filled == 8) {
        words.push_back(static_cast<std::int64_t>(word));
        word = 0;
        filled = 0;
      }
    }
    if (filled > 0) words.push_back(static_cast<std::int64_t>(word));
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

  GraphView g_ = GraphView(constants::graph<Program>);
  Vector<const Axis*> axes_{};
  Vector<const Operation*> operations_{};
  Vector<const char*> files_{};
  int quarters_ = 0, filled_ = 64;  ///< the word that small numbers go to, and how many of its bits they fill
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
  const std::int64_t* from = written.data();
  const int count = result.size <= result.most ? result.size : 0;
  for (int i = 0; i < count; ++i) result.words[i] = from[i];
  return result;
}
template <class Program>
inline constexpr RoomyWords roomy = in_room(written<Program>());
template <class Program>
inline constexpr int size = roomy<Program>.size;
template <class Program>
constexpr Words<size<Program>> words() {
  if constexpr ((size<Program>) > RoomyWords::most) return frozen<size<Program>>(written<Program>());
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
