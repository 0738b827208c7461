// What the tests of kernels share: whole tensors in double, a call of an operation on parts of them, comparison with
// definitions.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include <doctest/doctest.h>
// The device whose kernels are tested: a GPU, or what stands in for it, or the CPU.
#if defined(PARALLEL_TEST_CUDA)
#include <parallel/device/cuda/device.hpp>
using TestDevice = parallel::CudaDouble;
#define OR_HALF , parallel::bfloat16, parallel::float16  // more element types, where there are kernels for them
#else
#include <parallel/communicator/ordered_sum.hpp>
#include <parallel/device/cpu/device.hpp>
using TestDevice = parallel::CpuDouble;
#define OR_HALF
#endif

inline const TestDevice& test_device() {
  static const TestDevice device{};
  return device;
}
#if !defined(PARALLEL_TEST_CUDA)
/// Whether an operation's bits are the same by any number of threads: another library than Eigen may round the products
/// of parts otherwise.
inline bool keeps_bits(const parallel::Operation& operation) {
  static const bool eigen = parallel::internals::numerics().find("products of Eigen") != std::string::npos;
  const std::string_view name = operation.name;
  return eigen || (name.find("matmul") == name.npos && name.find("convolution") == name.npos);
}
/// The CPU by three threads, which share out whatever can be and has 48 elements or more.
inline const TestDevice& shared_out() {
  static const TestDevice device{.team = std::make_shared<parallel::internals::cpu::Team>(3, 16)};
  return device;
}
#endif

using Sizes = std::vector<std::int64_t>;

inline std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}
/// Calls f(index) for every index, the last dimension varying fastest.
template <class F>
void each_index(const Sizes& sizes, F f) {
  Sizes index(sizes.size(), 0);
  if (product(sizes) == 0) return;
  for (;;) {
    f(index);
    std::size_t d = sizes.size();
    while (d > 0 && ++index[d - 1] == sizes[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}
inline std::int64_t position(const Sizes& sizes, const Sizes& index) {
  std::int64_t at = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) at = at * sizes[d] + index[d];
  return at;
}

/// A whole tensor.
struct Numbers {
  Sizes sizes{};
  std::vector<double> values{};
  Numbers() = default;
  explicit Numbers(Sizes s, double value = 0)
      : sizes(std::move(s)), values(static_cast<std::size_t>(product(sizes)), value) {}
  Numbers(Sizes s, std::vector<double> v) : sizes(std::move(s)), values(std::move(v)) {}
  double& operator()(const Sizes& index) { return values[static_cast<std::size_t>(position(sizes, index))]; }
  double operator()(const Sizes& index) const { return values[static_cast<std::size_t>(position(sizes, index))]; }
  /// The element that an index of a larger tensor meets, as NumPy broadcasts.
  double repeated(const Sizes& index) const {
    Sizes own(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) own[d] = sizes[d] == 1 ? 0 : index[d + index.size() - sizes.size()];
    return (*this)(own);
  }
};
/// Normal numbers that float holds exactly.
inline Numbers normal_numbers(const Sizes& sizes, unsigned seed, double deviation = 1, double mean = 0) {
  Numbers result(sizes);
  std::mt19937 engine(seed);
  std::normal_distribution<double> normal(mean, deviation);
  for (double& v : result.values) v = static_cast<double>(static_cast<float>(normal(engine)));
  return result;
}
inline Numbers whole_numbers(const Sizes& sizes, unsigned seed, int end) {
  Numbers result(sizes);
  std::mt19937 engine(seed);
  for (double& v : result.values) v = static_cast<double>(engine() % static_cast<unsigned>(end));
  return result;
}
/// A tensor given by its definition.
inline Numbers defined(const Sizes& sizes, const std::function<double(const Sizes&)>& value) {
  Numbers result(sizes);
  each_index(sizes, [&](const Sizes& index) { result(index) = value(index); });
  return result;
}

/// A part of a whole tensor.
struct Box {
  Sizes offset, size;
};
inline Box all_of(const Sizes& sizes) { return {Sizes(sizes.size(), 0), sizes}; }
/// The parts of a dimension that is split into n, as evenly as can be: uneven parts, too.
inline std::vector<Box> split(const Sizes& sizes, int dim, int n) {
  std::vector<Box> parts;
  const auto d = static_cast<std::size_t>(dim);
  for (int i = 0; i < n; ++i) {
    Box part = all_of(sizes);
    part.offset[d] = sizes[d] * i / n;
    part.size[d] = sizes[d] * (i + 1) / n - part.offset[d];
    parts.push_back(part);
  }
  return parts;
}
inline Numbers part_of(const Numbers& whole, const Box& box) {
  return defined(box.size, [&](Sizes index) {
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
    return whole(index);
  });
}

template <class T>
constexpr double tolerance = std::is_same_v<T, double>               ? 1e-12
                             : std::is_same_v<T, parallel::bfloat16> ? 1.0 / 256
                             : std::is_same_v<T, parallel::float16>  ? 1.0 / 2048
                                                                     : 2e-6;

/// Compares with the largest expected number as the scale.
inline void check_near(const Numbers& actual, const Numbers& expected, double relative) {
  REQUIRE(actual.sizes == expected.sizes);
  double scale = 1e-30, worst = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (std::isfinite(expected.values[i])) scale = std::max(scale, std::abs(expected.values[i]));
    const double error = std::abs(actual.values[i] - expected.values[i]);
    if (std::isfinite(expected.values[i]))
      worst = std::isnan(worst) || error <= worst ? worst : error;  // what is no number is the worst
    else
      CHECK(
          (actual.values[i] == expected.values[i] || (std::isnan(actual.values[i]) && std::isnan(expected.values[i]))));
  }
  CHECK(worst <= relative * scale);
}

template <class T>
T stored(double x) {
  if constexpr (parallel::internals::Half<T>)
    return T(static_cast<float>(x));
  else
    return std::isnan(x) && std::is_same_v<T, int> ? T{-77} : static_cast<T>(x);
}
template <class T>
double number(T x) {
  if constexpr (parallel::internals::Half<T>)
    return static_cast<double>(static_cast<float>(x));
  else
    return static_cast<double>(x);
}

/// A call of an operation. Tensors of real numbers have element type T; every buffer begins off a cache line and ends
/// with a guard. Where the device has memory of its own, the buffers are copied to it and back, twice: once they begin
/// at a cache line, so that wide accesses are taken, and once off it.
template <class T>
class Run {
 public:
  template <class U = T>
  Run& operand(const Numbers& whole) {
    return operand<U>(whole, all_of(whole.sizes));
  }
  template <class U = T>
  Run& operand(const Numbers& whole, const Box& box) {
    return add<U>(call_.operands, whole, box);
  }
  Run& integers(const Numbers& whole) { return integers(whole, all_of(whole.sizes)); }
  Run& integers(const Numbers& whole, const Box& box) { return add<int>(call_.operands, whole, box); }
  Run& scalars(const std::vector<double>& values) {
    return add<double>(call_.operands, Numbers({static_cast<std::int64_t>(values.size())}, values),
                       all_of({static_cast<std::int64_t>(values.size())}));
  }
  Run& scalar(double value) { return add<double>(call_.operands, Numbers(Sizes{}, value), all_of({})); }
  template <class U = T>
  Run& result(const Sizes& whole) {
    return result<U>(whole, all_of(whole));
  }
  template <class U = T>
  Run& result(const Sizes& whole, const Box& box) {
    return add<U>(call_.results, Numbers(whole, std::numeric_limits<double>::quiet_NaN()), box);
  }
  /// The result lies where operand i does.
  Run& result_in_place(int i) {
    call_.results.push_back(call_.operands[i]);
    return *this;
  }
  Run& ints(const parallel::Ints& i) {
    call_.ints = i;
    return *this;
  }
  Run& reals(double first, double second = 0) {
    call_.reals[0] = first;
    call_.reals[1] = second;
    return *this;
  }
  /// How far results may be apart, of the largest, where buffers lie differently.
  Run& near(double relative) {
    near_ = relative;
    return *this;
  }
  Run& within(std::int64_t layer, std::int64_t micro_batch) {
    call_.layer = layer;
    call_.micro_batch = micro_batch;
    return *this;
  }
  /// The first result. On the CPU several threads must give the same bits; another library's products, near ones.
  Numbers run(const parallel::Operation& operation) {
    const auto with = [&](const TestDevice& device) {
      return [&](parallel::Call& call) {
        call.kernel = device.kernel(operation, call);
        REQUIRE_MESSAGE(bool(call.kernel), operation.name);
#if defined(PARALLEL_TEST_CUDA)
        call.kernel(call);
#else
        device.compute({{&call, 1}});
#endif
      };
    };
#if !defined(PARALLEL_TEST_CUDA)
    const std::vector<Bytes> before = contents();
    call_.operation = &operation;
    run(with(shared_out()));
    call_.operation = nullptr;
    call_.context = nullptr;
    const std::vector<Bytes> shared = contents();
    const std::vector<Numbers> near_those = results();
    put(before);
#endif
    const Numbers result = run(with(test_device()));
#if !defined(PARALLEL_TEST_CUDA)
    if (keeps_bits(operation)) {
      CHECK_MESSAGE(contents() == shared, operation.name);
    } else {
      check_results_near(near_those);
      for (std::size_t i = 0; i < buffers_.size(); ++i)
        if (!is_result(buffers_[i])) CHECK_MESSAGE(contents()[i] == shared[i], operation.name);
    }
#endif
    return result;
  }
  /// The first result of what f(call) does.
  template <class F>
  requires std::invocable<F, parallel::Call&> Numbers run(F f) {
    if constexpr (TestDevice::asynchronous) {
      const std::vector<Bytes> before = contents();
      run_on_device(f, 0);
      const std::vector<Numbers> first = results();
      put(before);
      run_on_device(f, 1);
      check_results_near(first);
    } else {
      test_device().prepare(call_);
      f(call_);
    }
    for (const Buffer& b : buffers_)
      for (std::size_t i = 0; i < line; ++i) CHECK(b.data()[b.size + i] == guard);
    return get(0);
  }
  Numbers get(int result) const {
    const parallel::View& v = call_.results[result];
    switch (v.dtype) {
      case parallel::DType::f64: return read<double>(v);
      case parallel::DType::i32: return read<int>(v);
      case parallel::DType::bf16: return read<parallel::bfloat16>(v);
      case parallel::DType::f16: return read<parallel::float16>(v);
      default: return read<float>(v);
    }
  }
  parallel::Call& call() { return call_; }

 private:
  static constexpr std::size_t line = 64;
  static constexpr unsigned char guard = 0xA5;
  using Bytes = std::vector<unsigned char>;
  struct Buffer {
    std::unique_ptr<unsigned char[]> bytes;
    std::size_t begin, size, element;
    unsigned char* data() const { return bytes.get() + begin; }
  };
  std::vector<Numbers> results() const {
    std::vector<Numbers> all;
    for (int i = 0; i < call_.results.size(); ++i) all.push_back(get(i));
    return all;
  }
  bool is_result(const Buffer& buffer) const {
    bool is = false;
    for (const parallel::View& v : call_.results) is = is || v.data == buffer.data();
    return is;
  }
  void check_results_near(const std::vector<Numbers>& expected) const {
    for (int i = 0; i < call_.results.size(); ++i) check_near(get(i), expected[static_cast<std::size_t>(i)], near_);
  }
  std::vector<Bytes> contents() const {
    std::vector<Bytes> all;
    for (const Buffer& b : buffers_) all.emplace_back(b.data(), b.data() + b.size);
    return all;
  }
  void put(const std::vector<Bytes>& all) {
    for (std::size_t b = 0; b < buffers_.size(); ++b) std::copy_n(all[b].data(), all[b].size(), buffers_[b].data());
  }
  /// With every buffer in the device's memory, so many elements behind the begin of a line, between guards.
  template <class F>
  void run_on_device(F f, std::size_t elements_off) {
    std::vector<std::size_t> begins;
    std::size_t all = 0;
    for (const Buffer& b : buffers_) {
      begins.push_back(all + line + elements_off * b.element);
      all += (b.size + 4 * line) / line * line;
    }
    parallel::MemoryOf<TestDevice> memory = test_device().memory(static_cast<std::int64_t>(all));
    parallel::Call call = call_;
    const auto move = [&](parallel::View& v) {
      for (std::size_t i = 0; i < buffers_.size(); ++i) {
        const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(buffers_[i].bytes.get()),
                             at = reinterpret_cast<std::uintptr_t>(v.data) - from;
        if (at < buffers_[i].size + 3 * line)
          return static_cast<void>(v.data = memory.data() + begins[i] + at - buffers_[i].begin);
      }
    };
    for (parallel::View& v : call.operands) move(v);
    for (parallel::View& v : call.results) move(v);
    Bytes sent(all, guard), came(all);
    const auto each = [&](auto g) {
      for (std::size_t i = 0; i < buffers_.size(); ++i) g(begins[i], buffers_[i].data(), buffers_[i].size);
    };
    each([&](std::size_t at, unsigned char* data, std::size_t size) { std::copy_n(data, size, sent.data() + at); });
    memory.change(0, static_cast<std::int64_t>(all), [&](std::byte* bytes) { std::memcpy(bytes, sent.data(), all); });
    test_device().prepare(call);
    f(call);
    memory.look(0, static_cast<std::int64_t>(all),
                [&](const std::byte* bytes) { std::memcpy(came.data(), bytes, all); });
    each([&](std::size_t at, unsigned char* data, std::size_t size) {
      std::copy_n(came.data() + at, size, data);
      std::fill_n(came.data() + at, size, guard);
    });
    CHECK(came == Bytes(all, guard));
  }
  template <class U, class Views>
  Run& add(Views& views, const Numbers& whole, const Box& box) {
    parallel::View v;
    v.dtype = parallel::internals::dtype_of<U>;
    v.rank = static_cast<int>(box.size.size());
    for (int d = 0; d < v.rank; ++d) {
      const auto at = static_cast<std::size_t>(d);
      v.size[d] = box.size[at];
      v.offset[d] = box.offset[at];
      v.whole[d] = whole.sizes[at];
    }
    const Numbers part = part_of(whole, box);
    Buffer b;
    b.size = part.values.size() * sizeof(U);
    b.element = sizeof(U);
    b.bytes = std::make_unique<unsigned char[]>(b.size + 3 * line);
    b.begin = line - reinterpret_cast<std::uintptr_t>(b.bytes.get()) % line + sizeof(U);
    for (std::size_t i = 0; i < line; ++i) b.data()[b.size + i] = guard;
    U* data = reinterpret_cast<U*>(b.data());
    for (std::size_t i = 0; i < part.values.size(); ++i) data[i] = stored<U>(part.values[i]);
    v.data = data;
    views.push_back(v);
    buffers_.push_back(std::move(b));
    return *this;
  }
  template <class U>
  static Numbers read(const parallel::View& v) {
    Numbers result(Sizes(v.size, v.size + v.rank));
    for (std::size_t i = 0; i < result.values.size(); ++i) result.values[i] = number(v.as<const U>()[i]);
    return result;
  }
  parallel::Call call_{};
  std::vector<Buffer> buffers_{};
  double near_ = 2 * tolerance<T>;
};
