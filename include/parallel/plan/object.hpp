// What an object file carries of every program that is planned in it: the differentiated graph as plain words, names
// copied in, so that tools/plan can run the same passes on it for any mesh, and none of it is executed. Nothing in it
// is an address.
#pragma once
#include <bit>

#include <parallel/meta/type_name.hpp>
#include <parallel/plan/constant.hpp>
#include <parallel/plan/demands.hpp>

namespace parallel::internals {

/// Words of 64 bits, in the machine's order of bytes. A file is searched for the first two.
namespace object {
inline constexpr std::int64_t magic = 0x6c656c6c61726170;          ///< "parallel", as a little-endian machine writes it
inline constexpr std::int64_t program_magic = 0x6d6172676f72703a;  ///< ":program"
inline constexpr std::int64_t mesh_magic = 0x3a6873656d3a3a3a;     ///< ":::mesh:"
inline constexpr std::int64_t version = 19;
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
    if (t.kind == PlacementKind::split) way.field(t.flat);
    if (t.kind == PlacementKind::split) way.field(t.alone);
  } else if constexpr (ListLike<T>) {
    if constexpr (!requires { std::tuple_size<Field>::value; }) way.count(t);
    for (auto& item : t) way.field(item);
  } else {
    if constexpr (std::is_same_v<Field, Transition>)
      if (!way.there(!t.axes.empty())) return;  // most nodes move nothing
    meta::with_members(t, [&](auto&... members) { (way.field(members), ...); });
  }
}
/// A graph's lists, from one to before another; each begins a word.
template <class Way, class G>
constexpr void words_of_lists(Way& way, G& graph, int from, int to) {
  int i = 0;
  each_list(
      [&](auto& list) {
        using Item = std::remove_cvref_t<decltype(*list.begin())>;
        const bool wanted = i >= from && i < to && !std::is_same_v<Item, char>;  // which stand where they are named
        ++i;
        if (!wanted) return;
        way.begin_word();
        if constexpr (!std::is_same_v<Item, char>) way.field(list);
      },
      graph);
}
inline constexpr int lists_of_graph = 11;
/// What passes ask of an operation; the rest of it are functions.
template <class Way, class O>
constexpr void words_of_operation(Way& way, O& o) {
  const auto all = [&](auto&... fields) { (way.field(fields), ...); };
  all(o.structural, o.updates, o.view, o.aliases, o.source, o.computes, o.remembers, o.reads_part_of, o.ring, o.rate,
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

  /// A program stands in sections, of which the compiler makes each apart: it takes only so many steps at once.
  static constexpr int sections = 4;
  constexpr void section(int i) {
    if (i == 0) {
      heads();
      words_of_lists(*this, static_cast<const GraphView&>(g_), 0, 1);  // the values
    } else if (i == 1) {
      words_of_lists(*this, static_cast<const GraphView&>(g_), 1, 2);  // the nodes
    } else if (i == 2) {
      words_of_lists(*this, static_cast<const GraphView&>(g_), 2, lists_of_graph);
      constexpr Demands demands = demands_of<Program>();
      field(demands);
    } else {
      spellings();
    }
    end_quarters();
  }
  /// Names that all sections refer to by number; before the first of them.
  constexpr void gather() {
    AxisList axes;
    for (const Value& v : g_.values) v.type.layout.collect(axes);
    for (const Axis* a : axes) axes_.push_back(a);
    for (const Node& n : g_.nodes) place(operations_, n.operation);
    for (const Origin& o : g_.origins) place(operations_, o.operation);
  }
  /// A mesh that the compiler planned a program for.
  constexpr void mesh(const Mesh& mesh, std::int64_t checksum_of_program) {
    number(checksum_of_program);
    number(mesh.count);
    for (int i = 0; i < mesh.count; ++i) {
      text(mesh.axes[i].axis->text());
      number(mesh.axes[i].size);
    }
    number(mesh.here);
    end_quarters();
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
    field(d.order);
    if (d.ordered()) field(d.ordered_for);
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
  constexpr void begin_word() { end_quarters(); }

 private:
  constexpr void heads() {
    number(is_trained<Program>);
    number(Program::micro_batches);
    number(axes_.size());
    for (const Axis* a : axes_) text(a->text());
    number(operations_.size());
    for (const Operation* o : operations_) words_of_operation(*this, *o);
    field(static_cast<const GraphView&>(g_).base());
  }
  constexpr void spellings() {
    text(meta::type_name<typename Program::Model>());
    text(is_trained<Program> ? meta::type_name<typename Program::Optimizer>() : "");
    Vector<int> file_of;
    for (const Origin& o : g_.origins) file_of.push_back(file(o.source.file));
    number(files_.size());
    for (const char* f : files_) text(f);
    for (int i = 0; i < file_of.size(); ++i) {
      number(file_of[i]);
      number(g_.origins[static_cast<std::size_t>(i)].source.line);
    }
  }
  /// Numbers from -1 to 65,533, as most are, stand four in a word; others in a word of their own behind a mark.
  constexpr void number(std::int64_t n) {
    const bool small = n >= -1 && n < mark - 1;
    if (filled_ == 64) {
      quarters_ = words.size();
      words.push_back(0);
      filled_ = 0;
    }
    words[quarters_] |= static_cast<std::int64_t>(static_cast<std::uint64_t>(small ? n + 1 : mark) << filled_);
    filled_ += 16;
    if (!small) words.push_back(n);
  }
  constexpr void end_quarters() { filled_ = 64; }
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
    const T* const* const all = known.begin();  // no calls: few statements are few steps of the compiler
    const int count = known.size();
    for (int i = 0; i < count; ++i)
      if (all[i] == what) return i;
    known.push_back(what);
    return count;
  }
  /// Files are told apart by their names: addresses of equal literals may differ.
  constexpr int file(const char* name) {
    for (int i = files_.size() - 1; i >= 0; --i)
      if (std::string_view(files_[i]) == name) return i;
    files_.push_back(name);
    return files_.size() - 1;
  }

  GraphView g_ = GraphView(constants::graph<Program>);
  Vector<const Axis*> axes_{};
  Vector<const Operation*> operations_{};
  Vector<const char*> files_{};
  int quarters_ = -1, filled_ = 64;  ///< the word that small numbers go to, and how many of its bits they fill
};

/// Writes the header of words of which those before `end` say the same from each compiler.
constexpr void put_header(std::span<std::int64_t> words, std::int64_t what, std::int64_t end) {
  const auto all = static_cast<std::int64_t>(words.size());
  const auto of = [&](std::int64_t from, std::int64_t to) {
    return checksum(words.subspan(static_cast<std::size_t>(from), static_cast<std::size_t>(to - from)));
  };
  const std::int64_t values[header]{magic, what, version, all, of(header, end), end, of(end, all)};
  for (std::size_t i = 0; i < header; ++i) words[i] = values[i];
}

template <class Program>
constexpr Vector<std::int64_t> written(const GraphView& graph) {
  Writer<Program> writer(graph);
  writer.gather();
  writer.words.resize(header);
  std::int64_t end = 0;
  for (int i = 0; i < writer.sections; ++i) {
    if (i + 1 == writer.sections) end = writer.words.size();
    writer.section(i);
  }
  put_header({writer.words.begin(), static_cast<std::size_t>(writer.words.size())}, program_magic, end);
  return static_cast<Vector<std::int64_t>&&>(writer.words);
}
template <int n>
struct Words {
  std::int64_t words[std::size_t{n}];
};
/// Words in more room than most need, so that the compiler writes them once; of more there is the size alone.
struct RoomyWords {
  static constexpr int most = 8192;
  int size = 0;
  std::int64_t words[most]{};
};
template <class Program>
constexpr Vector<std::int64_t> section(int i) {
  Writer<Program> writer;
  writer.gather();
  writer.section(i);
  return static_cast<Vector<std::int64_t>&&>(writer.words);
}
constexpr RoomyWords in_room(const Vector<std::int64_t>& written) {
  RoomyWords result{.size = written.size()};
  const std::int64_t* from = written.begin();
  const int count = result.size <= result.most ? result.size : 0;
  for (int i = 0; i < count; ++i) result.words[i] = from[i];
  return result;
}
template <class Program, int i>
inline constexpr RoomyWords roomy = in_room(section<Program>(i));
template <class Program, int i = Writer<Program>::sections>
inline constexpr int begin_of = begin_of<Program, i - 1> + roomy<Program, i - 1>.size;
template <class Program>
inline constexpr int begin_of<Program, 0> = header;

template <class Program>
constexpr Words<begin_of<Program>> words() {
  Words<begin_of<Program>> result{};
  const auto put = [&]<int i>(std::integral_constant<int, i>) {
    constexpr int size = roomy<Program, i>.size;
    std::int64_t* const to = result.words + begin_of<Program, i>;
    if constexpr (size > RoomyWords::most) {
      const Vector<std::int64_t> again = section<Program>(i);
      for (int k = 0; k < size; ++k) to[k] = again.begin()[k];
    } else {
      for (int k = 0; k < size; ++k) to[k] = roomy<Program, i>.words[k];
    }
  };
  [&]<int... i>(std::integer_sequence<int, i...>) { (put(std::integral_constant<int, i>{}), ...); }
  (std::make_integer_sequence<int, Writer<Program>::sections>{});
  put_header(result.words, program_magic, begin_of<Program, Writer<Program>::sections - 1>);
  return result;
}
/// The words of a program. Whoever names them has them in his object file.
template <class Program>
[[gnu::used]] inline constexpr Words<begin_of<Program>> program = words<Program>();

template <class Program>
constexpr Vector<std::int64_t> written(const Mesh& mesh) {
  Writer<Program> writer;
  writer.words.resize(header);
  writer.mesh(mesh, program<Program>.words[4]);
  const auto size = static_cast<std::size_t>(writer.words.size());
  put_header({writer.words.begin(), size}, mesh_magic, writer.words.size());
  return static_cast<Vector<std::int64_t>&&>(writer.words);
}
template <int n>
constexpr Words<n> frozen(const Vector<std::int64_t>& written) {
  Words<n> result{};
  for (int i = 0; i < n; ++i) result.words[i] = written[i];
  return result;
}
template <class Program, Mesh m>
inline constexpr int size_of_mesh = written<Program>(m).size();
template <class Program, Mesh m>
[[gnu::used]] inline constexpr Words<size_of_mesh<Program, m>> mesh =
    frozen<size_of_mesh<Program, m>>(written<Program>(m));
}  // namespace object

}  // namespace parallel::internals
