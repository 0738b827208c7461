// Reads what object.hpp has written into an object file. The words may come from anybody: every length, index and
// enumeration is checked, and that the passes can work on the graph; nothing of it is executed.
#pragma once
#include <limits>
#include <memory>

#include <parallel/object/carried.hpp>
#include <parallel/object/portable_name.hpp>
#include <parallel/object/sound_graph.hpp>

namespace parallel::internals::object {

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
    const int micro_batches = whole(1, std::numeric_limits<int>::max());
    check_iterations(micro_batches, 1);
    for (auto n = whole(0, most_nodes); n > 0; --n) {
      const std::string& name = c.words.emplace_back(text());
      require(!name.empty() && c.axis(name) == nullptr, "an axis has no name, or that of another");
      c.axes.emplace_back(name.c_str());
    }
    for (auto n = whole(0, most_nodes); n > 0; --n) {
      Operation& o = c.operations.emplace_back();
      words_of_operation(*this, o);
      operations_.push_back(o.structural == Structural::none ? &o
                                                             : operation::structural[static_cast<int>(o.structural)]);
    }
    field(c.graph.base());
    words_of_lists(*this, c.graph, 0, lists_of_graph);
    field(c.demands);
    check_axes(c.demands.on);
    require(c.demands.on.size() == c.demands.sent.size(), "an axis has no budget, or a budget no axis");
    const Graph& g = c.graph;
    require(at_ == end_of_program(), "words are left over");
    taken_ = 4;
    const std::string model = portable(text()), optimizer = portable(text());
    require(trained == !optimizer.empty(), "it is trained and names no optimizer, or names one and is not");
    for (auto n = whole(0, most_nodes); n > 0; --n)
      files_.push_back(c.words.emplace_back(in_one_line(characters())).c_str());
    for (Origin& o : c.graph.origins) {
      const auto file = static_cast<std::size_t>(whole(0, static_cast<std::int64_t>(files_.size()) - 1));
      o.source = {files_[file], whole(0, 1 << 30)};
    }
    require(at_ == words_.size(), "words are left over");
    check_graph(g);
    c.name = optimizer.empty() ? "Evaluation<" + model + ">" : "Training<" + model + ", " + optimizer + ">";
    if (micro_batches > 1) c.name = "Accumulate<" + std::to_string(micro_batches) + ", " + c.name + ">";
    if (g.stages != nullptr && c.schedule.name != schedules::one_forward_one_backward.name)
      c.name = "Pipelined<" + parallel::text(c.schedule) + ", " + c.name + ">";
    if (g.balanced) c.name = "Balanced<" + c.name + ">";
    if (c.demands.strict) c.name = "Strict<" + c.name + ">";
    if (c.demands.memory < Demands::any || !c.demands.on.empty()) c.name = "Within<" + c.name + ">";
    std::string inputs;
    for (const Member& m : g.members)
      if (m.role == Role::input) inputs += (inputs.empty() ? "" : ", ") + parallel::text(m.type);
    c.name += "(" + inputs + ")";
    return result;
  }

  CarriedMesh mesh() {
    begin();
    CarriedMesh result;
    result.program = number();
    for (auto n = whole(0, max_axes); n > 0; --n) {
      std::string name = text();
      const int size = whole(1, 1 << 20);
      result.axes.emplace_back(std::move(name), size);
    }
    result.here = whole(0, 1 << 20);
    require(at_ == words_.size() && at_ == end_of_program(), "words are left over");
    return result;
  }

  // What words_of asks for.
  template <Number T>
  void field(T& value) {
    if constexpr (std::is_same_v<T, double>) {
      value = std::bit_cast<double>(number());
    } else if constexpr (std::is_enum_v<T>) {
      const std::int64_t n = number();
      require(n >= 0 && n <= static_cast<int>(last_of(T{})), "an enumeration has no such value");
      value = static_cast<T>(n);
    } else if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
      value = static_cast<T>(number());
    } else {
      using Limits = std::numeric_limits<std::conditional_t<std::is_integral_v<T>, T, int>>;
      value = static_cast<T>(whole(Limits::min(), Limits::max()));
    }
  }
  template <class T>
  void field(T& t) {
    words_of(*this, t);
  }
  void field(std::string_view& t) { t = carried_->words.emplace_back(text()); }
  void field(Name& name) { name = carried_->graph.name({}, {text()}); }
  void field(Source&) {}
  void field(Dim& d) {
    d.size = number();
    d.count = whole(0, max_nesting);
    for (int i = 0; i < d.count; ++i) d.axes[i] = &at(carried_->axes);
    field(d.order);
    d.ordered_for = d.order == Order::contiguous ? nullptr : &at(carried_->axes);
  }
  void field(const Axis*& a) {
    const int i = whole(-1, static_cast<std::int64_t>(carried_->axes.size()) - 1);
    a = i < 0 ? nullptr : &carried_->axes[static_cast<std::size_t>(i)];
  }
  void field(const Operation*& o) { o = at(operations_); }
  void field(const Schedule*& s) {
    Carried& c = *carried_;
    s = &c.schedule;
    if (!there(true)) return;
    const bool known = whole(0, 1) == 1;
    const int chunks = whole(1, most_chunks);
    c.words.push_back(text());
    const auto shipped = find_schedule(c.words.back(), chunks);
    require(!known || shipped, "there is no such schedule");
    c.schedule = known ? *shipped : Schedule{.name = c.words.back(), .chunks = chunks};
  }
  template <class T, int capacity>
  void count(List<T, capacity>& list) {
    list.count = whole(0, capacity);
  }
  template <class T>
  void count(Vector<T>& list) {
    list.resize(whole(0, std::is_same_v<T, Value> || std::is_same_v<T, IndexOf<Value>> ? most_values : most_nodes));
  }
  bool there(bool) { return whole(0, 1) == 1; }
  void begin_word() { taken_ = 4; }

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
  std::int64_t number() {
    if (taken_ == 4) {
      quarters_ = static_cast<std::uint64_t>(word());
      taken_ = 0;
    }
    const auto quarter = static_cast<std::int64_t>(quarters_ >> (16 * taken_++) & 0xffff);
    return quarter == mark ? word() : quarter - 1;
  }
  int whole(std::int64_t least, std::int64_t most) {
    const std::int64_t n = number();
    require(n >= least && n <= most, "a number is out of range");
    return static_cast<int>(n);
  }
  /// The item that an index leads to.
  template <class Items>
  typename Items::reference at(Items& items) {
    const auto i = static_cast<std::size_t>(number());
    require(i < items.size(), "an index leads nowhere");
    return items[i];
  }
  std::string characters() {
    const std::int64_t size = number();
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
  std::span<const std::int64_t> words_;
  std::size_t at_ = 0;
  std::uint64_t quarters_ = 0;  ///< the word that small numbers are taken from
  int taken_ = 4;               ///< of its four
  Carried* carried_ = nullptr;
  std::vector<const Operation*> operations_{};
  std::vector<const char*> files_{};
};

}  // namespace parallel::internals::object
