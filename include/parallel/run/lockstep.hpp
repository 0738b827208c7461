// A graph by its definition: node by node, all ranks in turn, each transition by what the ranks' parts mean together
// and how a value is laid out anew, with the device's own kernels on the parts. What executors and own operations are
// compared with.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <parallel/device/cpu/device.hpp>
#include <parallel/plan/view.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals::lockstep {

/// A full tensor or a rank's part, in double whatever its element type.
struct Array {
  std::vector<std::int64_t> size{};
  std::vector<double> data{};
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const auto s : size) n *= s;
    return n;
  }
};

inline Array zeros(const std::vector<std::int64_t>& size) {
  Array a{size, {}};
  a.data.assign(static_cast<std::size_t>(a.elements()), 0.0);
  return a;
}

/// The part [begin, begin + extent) of a dimension.
inline Array part(const Array& whole, std::size_t dim, std::int64_t begin, std::int64_t extent) {
  std::vector<std::int64_t> size = whole.size;
  size[dim] = extent;
  Array result = zeros(size);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < dim; ++d) outer *= whole.size[d];
  for (std::size_t d = dim + 1; d < whole.size.size(); ++d) inner *= whole.size[d];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < extent * inner; ++i)
      result.data[static_cast<std::size_t>(o * extent * inner + i)] =
          whole.data[static_cast<std::size_t>((o * whole.size[dim] + begin) * inner + i)];
  return result;
}
inline Array join(const std::vector<Array>& parts, std::size_t dim) {
  std::vector<std::int64_t> size = parts[0].size;
  size[dim] *= static_cast<std::int64_t>(parts.size());
  Array result = zeros(size);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < dim; ++d) outer *= size[d];
  for (std::size_t d = dim; d < size.size(); ++d) inner *= parts[0].size[d];
  const auto n = static_cast<std::int64_t>(parts.size());
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t p = 0; p < n; ++p)
      for (std::int64_t i = 0; i < inner; ++i)
        result.data[static_cast<std::size_t>((o * n + p) * inner + i)] =
            parts[static_cast<std::size_t>(p)].data[static_cast<std::size_t>(o * inner + i)];
  return result;
}

/// A full tensor whose dimension's elements stand in another order: at place i that which was at place from(i).
template <class From>
Array reordered(const Array& a, std::size_t dim, From from) {
  Array result = zeros(a.size);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t d = 0; d < dim; ++d) outer *= a.size[d];
  for (std::size_t d = dim + 1; d < a.size.size(); ++d) inner *= a.size[d];
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t i = 0; i < a.size[dim]; ++i)
      for (std::int64_t e = 0; e < inner; ++e)
        result.data[static_cast<std::size_t>((o * a.size[dim] + i) * inner + e)] =
            a.data[static_cast<std::size_t>((o * a.size[dim] + from(i)) * inner + e)];
  return result;
}

/// What the parts of the ranks of one axis mean together.
inline Array denote(const std::vector<Array>& parts, Placement p) {
  if (p.split()) return join(parts, static_cast<std::size_t>(p.dim));
  Array result = parts[0];
  if (p.pending())
    for (std::size_t r = 1; r < parts.size(); ++r)
      for (std::size_t i = 0; i < result.data.size(); ++i) result.data[i] += parts[r].data[i];
  return result;
}
/// Parts that mean `whole`; the terms of a sum are made by `noise`, or the first has it all.
inline std::vector<Array> embed(const Array& whole, Placement p, int n,
                                const std::function<double()>& noise = nullptr) {
  std::vector<Array> parts;
  for (int r = 0; r < n; ++r) {
    if (p.split()) {
      const std::int64_t extent = whole.size[static_cast<std::size_t>(p.dim)] / n;
      parts.push_back(part(whole, static_cast<std::size_t>(p.dim), r * extent, extent));
    } else if (p.pending() && r > 0) {
      parts.push_back(zeros(whole.size));
      if (noise)
        for (std::size_t i = 0; i < whole.data.size(); ++i) {
          parts.back().data[i] = noise();
          parts[0].data[i] -= parts.back().data[i];
        }
    } else {
      parts.push_back(whole);
    }
  }
  return parts;
}
inline Array maximum(const std::vector<Array>& parts) {
  Array result = parts[0];
  for (const Array& p : parts)
    for (std::size_t i = 0; i < result.data.size(); ++i) result.data[i] = std::max(result.data[i], p.data[i]);
  return result;
}

/// Every value of a graph on every rank of a mesh.
class AllRanks {
 public:
  /// `own`: kernels of a program's own operations.
  AllRanks(const GraphView& graph, const Mesh& mesh, std::span<const CpuKernels> own = {})
      : g_(graph), mesh_(mesh), device_{own}, values_(graph.values.size()) {}

  std::vector<Array>& at(int value) { return values_[static_cast<std::size_t>(value)]; }
  double scalar = 1;  ///< every run-time scalar
  /// How many bytes of what is no number lie around a result at least: what kernels write there is found.
  static constexpr std::size_t least_margin = 64;
  std::size_t margin = least_margin;

  /// Gives a value its parts from the full tensor, axis by axis: first the terms of its sums, which are alike on all
  /// ranks of every other axis.
  void set(int value, const Array& whole, const std::function<double()>& noise = nullptr) {
    const Layout& layout = g_.value(value).type.layout;
    std::vector<Array> parts(static_cast<std::size_t>(mesh_.ranks()), whole);
    for (int d = 0; d < layout.rank(); ++d)
      if (const Standing stands = standing(layout.dims[d], mesh_); stands.order != Order::contiguous)
        parts.assign(parts.size(), reordered(parts[0], static_cast<std::size_t>(d),
                                             [&](std::int64_t place) { return stands.element(place); }));
    AxisList axes;
    layout.collect(axes);
    for (const bool pending : {true, false})
      for (const Axis* axis : axes) {
        const Placement p = layout.on(axis);
        if (p.pending() != pending) continue;
        const auto laid_out = [&](const std::vector<Array>& group) {
          return embed(group[0], p, static_cast<int>(group.size()), noise);
        };
        parts = over(parts, *axis, laid_out);
      }
    at(value) = parts;
  }
  /// The full tensor that the parts mean, innermost axes first.
  Array whole(int value) {
    std::vector<Array> parts = at(value);
    Layout layout = g_.value(value).type.layout;
    AxisList axes;
    layout.collect(axes);
    for (int i = axes.size() - 1; i >= 0; --i)
      parts = over(parts, *axes[i], [&](const std::vector<Array>& group) {
        return std::vector<Array>(group.size(), denote(group, layout.on(axes[i])));
      });
    for (int d = 0; d < layout.rank(); ++d)
      if (const Standing stands = standing(layout.dims[d], mesh_); stands.order != Order::contiguous)
        parts[0] = reordered(parts[0], static_cast<std::size_t>(d),
                             [&](std::int64_t element) { return stands.place(element); });
    return parts[0];
  }

  /// Whether the ranks of every axis on which a value is whole hold the same.
  bool consistent(int value) const {
    const Layout& layout = g_.value(value).type.layout;
    bool same = true;
    for (int i = 0; i < mesh_.count; ++i)
      if (layout.on(mesh_.axes[i].axis).whole())
        over(values_[static_cast<std::size_t>(value)], *mesh_.axes[i].axis, [&](const std::vector<Array>& group) {
          for (const Array& part : group)
            for (std::size_t e = 0; e < part.data.size(); ++e)
              same = same && std::abs(part.data[e] - group[0].data[e]) <= 1e-9 * (1 + std::abs(part.data[e]));
          return group;
        });
    return same;
  }

  /// Runs every node of the program in order; what has been set is not computed. No loops.
  void run() {
    for (const int n : g_.order) node(g_.node(n));
  }
  void node(const Node& node) {
    if (node.results == 0 || !at(node.result).empty()) return;
    if (node.operation == &operation::scalars) {
      Array a{{static_cast<std::int64_t>(g_.scalars.size())}, {}};
      a.data.assign(g_.scalars.size(), scalar);
      at(node.result).assign(static_cast<std::size_t>(mesh_.ranks()), a);
    } else if (node.operation == &operation::move) {
      move(node);
    } else {
      for (int r = 0; r < node.results; ++r) at(node.result + r).resize(static_cast<std::size_t>(mesh_.ranks()));
      for (int rank = 0; rank < mesh_.ranks(); ++rank) compute(node, rank);
    }
  }

 private:
  /// Applies f to the parts of every group of ranks that differ on one axis only.
  template <class F>
  std::vector<Array> over(const std::vector<Array>& parts, const Axis& axis, F f) const {
    std::vector<Array> result(parts.size());
    std::map<int, std::vector<int>> groups;
    for (int rank = 0; rank < mesh_.ranks(); ++rank) {
      int others = 0;
      for (int i = 0; i < mesh_.count; ++i)
        if (mesh_.axes[i].axis != &axis)
          others = others * mesh_.axes[i].size + mesh_.coordinate(rank, mesh_.axes[i].axis);
      groups[others].push_back(rank);
    }
    for (const auto& [others, ranks] : groups) {
      std::vector<Array> group;
      for (const int r : ranks) group.push_back(parts[static_cast<std::size_t>(r)]);
      const std::vector<Array> after = f(group);
      for (std::size_t i = 0; i < ranks.size(); ++i) result[static_cast<std::size_t>(ranks[i])] = after[i];
    }
    return result;
  }

  void move(const Node& node) {
    std::vector<Array> parts = at(node.operands[0]);
    const Transition& t = node.transition;
    for (const Axis* axis : t.axes)
      parts = over(parts, *axis, [&](const std::vector<Array>& group) {
        return embed(t.maximum ? maximum(group) : denote(group, t.from), t.to, static_cast<int>(group.size()));
      });
    at(node.result) = parts;
  }

  /// A part with room around it, as much as the full tensor takes, of what is no number: a kernel that reaches outside
  /// its part is found by it.
  struct Room {
    View view{};
    std::vector<unsigned char> bytes{};
    std::size_t around = 0;
    static constexpr unsigned char outside = 0xff, unwritten = 0xfe;

    std::size_t own() const { return bytes.size() - 2 * around; }
    /// How many bytes before the part, or behind it, something was written.
    std::size_t reached_before() const {
      std::size_t n = around;
      while (n > 0 && bytes[around - n] == outside) --n;
      return n;
    }
    std::size_t reached_behind() const {
      std::size_t n = around;
      while (n > 0 && bytes[around + own() + n - 1] == outside) --n;
      return n;
    }
  };
  Room room(int value, int rank, std::size_t around) const {
    const Type& type = g_.value(value).type;
    Room r;
    View& v = r.view;
    v.dtype = type.dtype;
    v.rank = type.layout.rank();
    for (int d = 0; d < v.rank; ++d) {
      const Dim& dim = type.layout.dims[d];
      v.size[d] = local(dim, mesh_);
      v.offset[d] = offset(dim, mesh_, rank);
      v.whole[d] = dim.size;
      const Standing stands = standing(dim, mesh_);
      v.order[d] = stands.order;
      v.ranks[d] = static_cast<int>(stands.ranks);
    }
    r.around = static_cast<std::size_t>(type.layout.elements() * bytes_of(v.dtype)) + around;
    r.bytes.assign(v.bytes() + 2 * r.around, Room::outside);
    v.data = r.bytes.data() + r.around;
    std::memset(v.data, Room::unwritten, v.bytes());
    return r;
  }
  template <class T>
  static void convert(const std::vector<double>& from, void* to) {
    for (std::size_t i = 0; i < from.size(); ++i) static_cast<T*>(to)[i] = static_cast<T>(from[i]);
  }
  static std::vector<double> numbers(const View& v) {
    std::vector<double> all(static_cast<std::size_t>(v.elements()));
    for (std::size_t i = 0; i < all.size(); ++i)
      all[i] = v.dtype == DType::f32   ? static_cast<double>(v.as<float>()[i])
               : v.dtype == DType::f64 ? v.as<double>()[i]
                                       : v.as<int>()[i];
    return all;
  }

  void compute(const Node& node, int rank) {
    Call call;
    std::vector<Room> rooms;
    for (const int o : node.operands) {
      rooms.push_back(room(o, rank, least_margin));
      const View& v = rooms.back().view;
      const std::vector<double>& data = values_[static_cast<std::size_t>(o)][static_cast<std::size_t>(rank)].data;
      if (v.dtype == DType::f32) convert<float>(data, v.data);
      if (v.dtype == DType::f64) convert<double>(data, v.data);
      if (v.dtype == DType::i32) convert<int>(data, v.data);
      call.operands.push_back(v);
    }
    for (int r = 0; r < node.results; ++r) {
      rooms.push_back(room(node.result + r, rank, margin));
      call.results.push_back(rooms.back().view);
    }
    if (node.operation->updates)
      for (int r = 0; r < node.results; ++r) call.results[r].data = call.operands[r].data;
    call.operation = node.operation;
    call.ints = node.ints;
    call.reals[0] = node.reals[0];
    call.reals[1] = node.reals[1];
    if (node.operation->aliases) {
      values_[static_cast<std::size_t>(node.result)][static_cast<std::size_t>(rank)] =
          values_[static_cast<std::size_t>(node.operands[0])][static_cast<std::size_t>(rank)];
      auto& size = values_[static_cast<std::size_t>(node.result)][static_cast<std::size_t>(rank)].size;
      size.assign(call.results[0].size, call.results[0].size + call.results[0].rank);
      return;
    }
    const Kernel kernel = device_.kernel(*node.operation, call);
    if (kernel == nullptr)
      throw CannotRun("there is no kernel for the operation " + std::string(node.operation->name) + " on " +
                      std::string(name_of(call.results[0].dtype)) + "; give one in the table of kernels");
    const std::vector<Room> before(rooms.begin(), rooms.begin() + node.operands.size());
    kernel(call);
    if (!node.operation->updates) check_touched(node, before, rooms);
    for (int r = 0; r < node.results; ++r) {
      const View& v = call.results[r];
      values_[static_cast<std::size_t>(node.result + r)][static_cast<std::size_t>(rank)] = {{v.size, v.size + v.rank},
                                                                                            numbers(v)};
    }
  }
  /// Throws Failure where a kernel wrote what it must not, or did not write what it must.
  static void check_touched(const Node& node, const std::vector<Room>& before, const std::vector<Room>& rooms) {
    const std::string kernel = "the kernel of " + std::string(node.operation->name);
    const auto operands = static_cast<std::size_t>(node.operands.size());
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      const Room& r = rooms[i];
      const bool operand = i < operands;
      const std::string which = (operand ? "operand " : "result ") + std::to_string(operand ? i : i - operands);
      if (operand && r.bytes != before[i].bytes)
        throw Failure(kernel + " writes to its " + which + "; write to the results only");
      const std::size_t behind = r.reached_behind(), reached = behind > 0 ? behind : r.reached_before();
      if (reached > 0)
        throw Failure(kernel + " writes outside its part of " + which + ", " + std::to_string(reached) + " bytes " +
                      (behind > 0 ? "behind" : "before") + " its " + std::to_string(r.own()) +
                      "; write View::elements() of it, no more");
      const auto bytes = static_cast<std::size_t>(bytes_of(r.view.dtype));
      for (std::size_t e = 0; !operand && e < r.own() / bytes; ++e) {
        const unsigned char* const element = r.bytes.data() + r.around + e * bytes;
        if (std::all_of(element, element + bytes, [](unsigned char b) { return b == Room::unwritten; }))
          throw Failure(kernel + " does not write element " + std::to_string(e) + " of " +
                        std::to_string(r.own() / bytes) + " of its part of " + which +
                        "; write all of it: memory has anything in it before");
      }
    }
  }

  GraphView g_;
  Mesh mesh_;
  CpuDouble device_;
  std::vector<std::vector<Array>> values_;
};

}  // namespace parallel::internals::lockstep
