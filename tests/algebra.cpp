// Laws of placements and transitions, each checked on every placement: conjugates, what a transition does to the ranks'
// parts, costs; shapes and meshes.
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include <parallel/algebra/notation.hpp>
#include <parallel/parallel.hpp>

using namespace parallel;
using namespace parallel::internals;
using namespace parallel::axes;

namespace {
const Placement placements[] = {Invariant, Broadcast, Partial, Split<0>, Split<1>, At<0>, At<1>, At<0, 1>};

/// The table of docs/placements.md: collective and bytes of a -> b, then of its conjugate. Bytes are in messages.
struct Listed {
  Placement from, to;
  Collective forward;
  double (*forward_sent)(double n);
  Collective backward;
  double (*backward_sent)(double n);
};
double nothing(double) { return 0; }
double ring(double n) { return (n - 1) / n; }
double twice(double n) { return 2 * (n - 1) / n; }
double crossing(double n) { return (n - 1) / (n * n); }
double whole(double) { return 1; }
const Listed listed[] = {
    {Split<0>, Broadcast, Collective::all_gather, ring, Collective::reduce_scatter, ring},
    {Split<0>, Invariant, Collective::all_gather, ring, Collective::slice, nothing},
    {Split<0>, Split<1>, Collective::all_to_all, crossing, Collective::all_to_all, crossing},
    {Split<0>, Partial, Collective::zero_pad, nothing, Collective::slice, nothing},
    {Broadcast, Split<0>, Collective::slice, nothing, Collective::zero_pad, nothing},
    {Invariant, Split<0>, Collective::slice, nothing, Collective::all_gather, ring},
    {Partial, Broadcast, Collective::all_reduce, twice, Collective::all_reduce, twice},
    {Partial, Invariant, Collective::all_reduce, twice, Collective::retype, nothing},
    {Partial, Split<0>, Collective::reduce_scatter, ring, Collective::all_gather, ring},
    {Invariant, Broadcast, Collective::retype, nothing, Collective::all_reduce, twice},
    {Broadcast, Invariant, Collective::retype, nothing, Collective::mask, nothing},
    {Broadcast, Partial, Collective::mask, nothing, Collective::mask, nothing},
    {Invariant, Partial, Collective::mask, nothing, Collective::retype, nothing},
    {At<0>, At<1>, Collective::send, whole, Collective::send, whole},
    {At<0>, Invariant, Collective::broadcast, whole, Collective::drop, nothing},
    {Invariant, At<0>, Collective::drop, nothing, Collective::broadcast, whole},
    {At<0>, Broadcast, Collective::broadcast, whole, Collective::reduce, whole},
    {Partial, At<0>, Collective::reduce, whole, Collective::broadcast, whole},
    {Broadcast, At<0>, Collective::drop, nothing, Collective::zero_pad, nothing},
    {At<0>, Partial, Collective::zero_pad, nothing, Collective::drop, nothing},
    {Split<0>, At<0>, Collective::gather, ring, Collective::scatter, ring},
    {At<0>, Split<0>, Collective::scatter, ring, Collective::gather, ring},
};

/// A matrix of whole numbers, so that sums are exact. A rank that holds nothing has an empty one.
struct Matrix {
  int rows = 0, columns = 0;
  std::vector<double> elements{};
  Matrix() = default;
  Matrix(int r, int c) : rows(r), columns(c), elements(static_cast<std::size_t>(r * c)) {}
  double& at(int r, int c) { return elements[static_cast<std::size_t>(r * columns + c)]; }
  double at(int r, int c) const { return elements[static_cast<std::size_t>(r * columns + c)]; }
  bool operator==(const Matrix&) const = default;
};
using Parts = std::vector<Matrix>;  ///< one per rank of the axis
double product(const Matrix& a, const Matrix& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.elements.size(); ++i) sum += a.elements[i] * b.elements[i];
  return sum;
}
Matrix plus(Matrix a, const Matrix& b) {
  for (std::size_t i = 0; i < a.elements.size(); ++i) a.elements[i] += b.elements[i];
  return a;
}
/// Rank r's slice of dimension d, and back among zeros.
Matrix sliced(const Matrix& m, int d, int n, int r) {
  Matrix part(d == 0 ? m.rows / n : m.rows, d == 1 ? m.columns / n : m.columns);
  for (int i = 0; i < part.rows; ++i)
    for (int j = 0; j < part.columns; ++j)
      part.at(i, j) = m.at(i + (d == 0 ? r * part.rows : 0), j + (d == 1 ? r * part.columns : 0));
  return part;
}
Matrix padded(const Matrix& part, int d, int n, int r) {
  Matrix m(d == 0 ? part.rows * n : part.rows, d == 1 ? part.columns * n : part.columns);
  for (int i = 0; i < part.rows; ++i)
    for (int j = 0; j < part.columns; ++j)
      m.at(i + (d == 0 ? r * part.rows : 0), j + (d == 1 ? r * part.columns : 0)) = part.at(i, j);
  return m;
}
bool holds(Placement p, int rank) { return p.kind != PlacementKind::at || (p.coordinates >> rank & 1) != 0; }
int first_of(Placement p) {
  int k = 0;
  while (!holds(p, k)) ++k;
  return k;
}

/// What the parts mean.
Matrix denotation(Placement p, const Parts& parts) {
  const int n = static_cast<int>(parts.size());
  if (!p.split() && !p.pending()) return parts[static_cast<std::size_t>(first_of(p))];
  Matrix sum;
  for (int r = 0; r < n; ++r) {
    const Matrix& part = parts[static_cast<std::size_t>(r)];
    const Matrix term = p.split() ? padded(part, p.dim, n, r) : part;
    sum = r == 0 ? term : plus(sum, term);
  }
  return sum;
}
/// Whether the parts are what the placement promises: equal where it says equal, nothing where it says nothing.
bool valid(Placement p, const Parts& parts) {
  for (int r = 0; r < static_cast<int>(parts.size()); ++r) {
    const Matrix& part = parts[static_cast<std::size_t>(r)];
    if (part.elements.empty() == holds(p, r)) return false;
    if (!p.split() && !p.pending() && holds(p, r) && !(part == parts[static_cast<std::size_t>(first_of(p))]))
      return false;
  }
  return true;
}
/// Some parts placed so, of a matrix [2n, 3n].
Parts some(Placement p, int n, int seed) {
  unsigned state = static_cast<unsigned>(seed);
  const auto next = [&] { return static_cast<double>((state = state * 1664525 + 1013904223) >> 24) - 128; };
  const auto filled = [&] {
    Matrix m(2 * n, 3 * n);
    for (double& e : m.elements) e = next();
    return m;
  };
  const Matrix value = filled();
  Parts parts;
  for (int r = 0; r < n; ++r)
    parts.push_back(p.split() ? sliced(value, p.dim, n, r) : p.pending() ? filled() : holds(p, r) ? value : Matrix{});
  return parts;
}
/// What each collective does to the parts, as its name says, knowing the placements only for which dimension and which
/// ranks.
Parts moved(Collective c, Placement from, Placement to, const Parts& parts) {
  const int n = static_cast<int>(parts.size());
  const auto part = [&](int r) -> const Matrix& { return parts[static_cast<std::size_t>(r)]; };
  Matrix sum = from.split() ? padded(part(0), from.dim, n, 0) : part(0);
  for (int r = 1; r < n; ++r)
    if (!part(r).elements.empty())
      sum = sum.elements.empty() ? part(r) : plus(sum, from.split() ? padded(part(r), from.dim, n, r) : part(r));
  Parts after;
  for (int r = 0; r < n; ++r) switch (c) {
      case Collective::retype: after.push_back(part(r)); break;
      case Collective::slice: after.push_back(sliced(part(r), to.dim, n, r)); break;
      case Collective::zero_pad:
        after.push_back(from.split()          ? padded(part(r), from.dim, n, r)
                        : r == first_of(from) ? part(r)
                                              : Matrix(2 * n, 3 * n));
        break;
      case Collective::mask: after.push_back(r == 0 ? part(r) : Matrix(2 * n, 3 * n)); break;
      case Collective::drop: after.push_back(holds(to, r) ? part(r) : Matrix{}); break;
      case Collective::all_gather:  // who is not to hold it gets it, too, where several are
      case Collective::all_reduce:
      case Collective::reduce:
      case Collective::gather: after.push_back(holds(to, r) ? sum : Matrix{}); break;
      case Collective::reduce_scatter:
      case Collective::all_to_all: after.push_back(sliced(sum, to.dim, n, r)); break;
      case Collective::scatter: after.push_back(sliced(part(first_of(from)), to.dim, n, r)); break;
      case Collective::send:
      case Collective::broadcast: after.push_back(holds(to, r) ? part(first_of(from)) : Matrix{}); break;
      case Collective::receive:
      case Collective::rotate:
      case Collective::offload:
      case Collective::fetch:
      case Collective::never: break;
    }
  return after;
}
/// The pairing of a value and its gradient: what ranks hold alike (Invariant, At) counts once, all else is summed over
/// the ranks.
double paired(Placement p, const Parts& value, const Parts& gradient) {
  if (p == Invariant || p.kind == PlacementKind::at)
    return product(value[static_cast<std::size_t>(first_of(p))], gradient[static_cast<std::size_t>(first_of(p))]);
  double sum = 0;
  for (std::size_t r = 0; r < value.size(); ++r) sum += product(value[r], gradient[r]);
  return sum;
}
}  // namespace

TEST_CASE("the conjugate of a placement is an involution") {
  for (const Placement& p : placements) {
    CHECK(conjugate(conjugate(p)) == p);
    CHECK((conjugate(p) == p) == !(p == Broadcast || p == Partial));
  }
  static_assert(conjugate(Broadcast) == Partial);
}

TEST_CASE("the table of transitions is the document's, with its conjugates and costs") {
  CHECK(std::size(listed) == std::size(transitions));
  for (const Listed& l : listed) {
    CHECK(collective(l.from, l.to) == l.forward);
    CHECK(collective(conjugate(l.to), conjugate(l.from)) == l.backward);
    for (const int n : {2, 3, 4, 8}) {
      CHECK(sent(l.forward, 1, n) == doctest::Approx(l.forward_sent(n)));
      CHECK(sent(l.backward, 1, n) == doctest::Approx(l.backward_sent(n)));
    }
    CHECK(communicates(l.forward) == (l.forward_sent(2) > 0));
    CHECK(sent(l.forward, 1, 1) == 0);
  }
  for (const TransitionRow& row : transitions) {
    bool there = false;
    for (const TransitionRow& other : transitions)
      there = there || (other.from.kind == conjugate(row.to).kind && other.to.kind == conjugate(row.from).kind);
    CHECK(there);
    CHECK(row.by_name == (row.from == Broadcast && row.to == Invariant));
  }
  for (const Placement& from : placements)  // every two different placements have one transition
    for (const Placement& to : placements) CHECK((from == to || collective(from, to) != Collective::never));
}

TEST_CASE("a transition keeps what the parts mean, and its conjugate is its transpose") {
  int seed = 0;
  for (const int n : {2, 3, 4})
    for (const Placement& from : placements)
      for (const Placement& to : placements) {
        if (from == to) continue;
        CAPTURE(n);
        CAPTURE(text(from));
        CAPTURE(text(to));
        const Parts before = some(from, n, ++seed);
        const Parts after = moved(collective(from, to), from, to, before);
        CHECK(valid(from, before));
        CHECK(valid(to, after));
        CHECK(denotation(to, after) == denotation(from, before));

        const Parts gradient = some(conjugate(to), n, ++seed);
        const Parts back = moved(collective(conjugate(to), conjugate(from)), conjugate(to), conjugate(from), gradient);
        CHECK(valid(conjugate(from), back));
        CHECK(paired(to, after, gradient) == paired(from, before, back));
      }
}

TEST_CASE("costs obey the triangle inequality") {
  const auto cost = [](const Placement& from, const Placement& to, int n) {
    return from == to ? 0 : sent(collective(from, to), 1, n);
  };
  for (const int n : {2, 3, 4, 8})
    for (const Placement& from : placements)
      for (const Placement& via : placements)
        for (const Placement& to : placements) {
          CAPTURE(n);
          CAPTURE(text(from));
          CAPTURE(text(via));
          CAPTURE(text(to));
          CHECK(cost(from, to, n) <= cost(from, via, n) + cost(via, to, n) + 1e-12);
        }
}

TEST_CASE("the moves of one operand shrink it before it travels") {
  constexpr Collective order[] = {Collective::slice, Collective::reduce_scatter, Collective::retype,
                                  Collective::all_reduce, Collective::all_gather};
  for (std::size_t i = 1; i < std::size(order); ++i) CHECK(known(order[i - 1]).order < known(order[i]).order);
  CHECK(known(Collective::receive).order == known(Collective::send).order);
  CHECK(communicates(Collective::receive));
  CHECK(sent(Collective::receive, 1000, 2) == 0);  // the sender counts it
}

// Two spellings are one type.
namespace {
using Short = Tensor<float, Shape<768, 3072 / tensor>>;
using Long = Tensor<float, Shape<768, 3072>, On<tensor, Split<1>>>;
static_assert(Short::type == Long::type);
static_assert(std::is_same_v<Symbolic<Short, Kind::data>::type, Symbolic<Long, Kind::data>::type>);
static_assert(!(Short::type == Tensor<float, Shape<768, 3072 / data>>::type));
static_assert(!(Short::type == Tensor<double, Shape<768, 3072 / tensor>>::type));
static_assert(Tensor<float, Shape<8>, On<data, Invariant>>::type == Tensor<float, Shape<8>>::type);
static_assert(Tensor<float, Shape<8>, On<data, Partial>, On<tensor, Broadcast>>::type ==
              Tensor<float, Shape<8>, On<tensor, Broadcast>, On<data, Partial>>::type);
static_assert(!(Tensor<float, Shape<8>, On<data, Partial>>::type ==
                Tensor<float, Shape<8>, On<data, Broadcast>>::type));
static_assert(!(Tensor<float, Shape<8>>::type == Tensor<float, Shape<8>, On<data, Partial>>::type));
static_assert(Tensor<float, Shape<64 / data>, On<tensor, Split<0>>>::type ==
              Tensor<float, Shape<64 / data / tensor>>::type);
static_assert(!(Tensor<float, Shape<64 / tensor / data>>::type == Tensor<float, Shape<64 / data / tensor>>::type));
static_assert(Parameter<float, Shape<8, 4>, Stored<data, Split<0>>>::type == Tensor<float, Shape<8, 4>>::type);
static_assert(Parameter<float, Shape<8, 4>, Stored<data, Split<0>>>::storing.split ==
              Tensor<float, Shape<8 / data, 4>>::type.layout);
static_assert(Parameter<float, Shape<8, 4 / tensor>, Stored<data, Split<0>>>::storing.split ==
              Tensor<float, Shape<8 / data, 4 / tensor>>::type.layout);

static_assert(Short::type.layout.on(&tensor) == Split<1> && Short::type.layout.on(&data) == Invariant);
static_assert(conjugate(Tensor<float, Shape<8 / data>, On<tensor, Broadcast>>::type) ==
              Tensor<float, Shape<8 / data>, On<tensor, Partial>>::type);
static_assert(Short::type.layout.elements() == 768 * 3072);
}  // namespace

TEST_CASE("a layout with another placement on one axis keeps all others") {
  constexpr Layout nested = Tensor<float, Shape<64 / data / tensor, 8>, On<stage, Partial>>::type.layout;
  for (const Placement& p : placements) {
    const Layout changed = nested.with(&tensor, p);
    CHECK(changed.on(&tensor) == p);
    CHECK(changed.on(&data) == Split<0>);
    CHECK(changed.on(&stage) == Partial);
    CHECK(changed.with(&tensor, Split<0>) == nested);
  }
  CHECK(nested.with(&data, Invariant).dims[0] == 64 / tensor);
  CHECK(nested.with(&data, Split<0>).dims[0] == 64 / tensor / data);  // a new split is the innermost
  CHECK(nested.dims[0].innermost(&tensor));
  CHECK_FALSE(nested.dims[0].innermost(&data));
  CHECK(nested.unplaced() == Tensor<float, Shape<64, 8>>::type.layout);
}

TEST_CASE("ranks of a mesh: the last axis varies fastest, and every rank has its own coordinates") {
  constexpr Mesh mesh{data = 2, tensor = 3, sequence = 4};
  static_assert(mesh.ranks() == 24 && mesh.extent(&tensor) == 3 && mesh.extent(&expert) == 1);
  int rank = 0;
  for (int d = 0; d < 2; ++d)
    for (int t = 0; t < 3; ++t)
      for (int s = 0; s < 4; ++s, ++rank) {
        CHECK(mesh.coordinate(rank, &data) == d);
        CHECK(mesh.coordinate(rank, &tensor) == t);
        CHECK(mesh.coordinate(rank, &sequence) == s);
        CHECK(mesh.coordinate(rank, &expert) == 0);
        CHECK(mesh.coordinate(rank, AxisList{&data, &sequence}) == d * 4 + s);
        CHECK(mesh.coordinate(rank, AxisList{&sequence, &data}) == d * 4 + s);  // by the order of the mesh
        CHECK(mesh.coordinate(rank, AxisList{}) == 0);
      }
  CHECK(mesh.extent(AxisList{&data, &sequence, &expert}) == 8);
}

TEST_CASE("slices of a dimension that several axes split tile it, the outermost axis in the largest pieces") {
  for (const Mesh& mesh :
       {Mesh{data = 2, sequence = 3}, Mesh{sequence = 3, data = 2}, Mesh{sequence = 3, tensor = 5, data = 2}}) {
    constexpr Dim nested = Dim(24) / data / sequence;
    CHECK(degree(nested, mesh) == 6);
    CHECK(local(nested, mesh) == 4);
    std::vector<int> held(24);
    for (int rank = 0; rank < mesh.ranks(); ++rank) {
      const std::int64_t begin = offset(nested, mesh, rank);
      CHECK(begin == mesh.coordinate(rank, &data) * 12 + mesh.coordinate(rank, &sequence) * 4);
      for (std::int64_t i = begin; i < begin + local(nested, mesh); ++i) ++held[static_cast<std::size_t>(i)];
    }
    for (const int times : held) CHECK(times == mesh.ranks() / 6);
    CHECK(offset(Dim(24), mesh, mesh.ranks() - 1) == 0);
  }
  constexpr Mesh mesh{data = 2, tensor = 4};
  static_assert(local_elements(Short::type.layout, mesh) == 768 * 768);
  static_assert(local_bytes(Tensor<bfloat16, Shape<64 / data, 8>>::type, mesh) == 512);
}

TEST_CASE("one notation") {
  CHECK(text(Tensor<float, Shape<4096 / data, 768>>::type) == "f32[4096/data, 768]");
  CHECK(text(Tensor<bfloat16, Shape<4096 / data / sequence, 3072 / tensor>>::type) ==
        "bf16[4096/data/sequence, 3072/tensor]");
  CHECK(text(Tensor<double, Shape<4096 / data, 768>, On<tensor, Partial>>::type) == "f64[4096/data, 768] +tensor");
  CHECK(text(Tensor<int, Shape<768>, On<tensor, Broadcast>, On<stage, At<0, 3>>>::type) ==
        "i32[768] ~tensor At<0, 3>@stage");
  CHECK(text(Tensor<float, Shape<>>::type) == "f32[]");
  CHECK(text(Mesh{data = 2, tensor = 4}) == "data=2, tensor=4");
  CHECK(text(AxisList{&data, &tensor}) == "data+tensor");
  CHECK(text(Split<2>) == "Split<2>");
  CHECK(text(Broadcast) == "Broadcast");
  CHECK(name_of(Collective::reduce_scatter) == "reduce_scatter");
  CHECK(name_of(Collective::receive) == "receive");
  CHECK(name_of(Collective::never) == "never");
}
