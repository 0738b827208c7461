// Numbers that a program hands over: how many there are, of which type, and how they lie.
#pragma once
#include <algorithm>
#include <concepts>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <parallel/algebra/notation.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

/// Whole tensors are handed over and taken back in row-major order: the last dimension varies fastest. What has data()
/// and size() will do, as std::vector, std::array and std::span have; a single number is a tensor of one element. A
/// matrix is what its rows are one behind the other, however it lies: by columns, or as a block of a larger one.
struct HandedOver {
  DType dtype = DType::f32;
  const void* data = nullptr;
  std::size_t size = 0;      ///< elements
  std::int64_t rows = -1;    ///< of a matrix; -1: nothing is known of its shape
  std::int64_t columns = 1;  ///< elements of a row, and in memory, in elements, from one to the next
  std::int64_t column_step = 1, row_step = 1;
  /// Where nothing lies in memory: writes elements [first, first + count) of the tensor, by the callable that is handed
  /// over.
  void (*make)(const void* callable, std::int64_t first, std::int64_t count, void* elements) = nullptr;

  /// Whether they lie one behind the other.
  bool together() const { return row_step == columns && (column_step == 1 || columns == 1); }
  /// f(first, step, count) for elements [begin, begin + count) of the tensor: pieces that lie evenly in memory, by the
  /// place of their first element, and how far apart their elements are.
  template <class F>
  void each_piece(std::int64_t begin, std::int64_t count, F f) const {
    if (together()) return f(begin, 1, count);
    for (const std::int64_t end = begin + count; begin < end;) {
      const std::int64_t row = begin / columns, column = begin % columns, n = std::min(columns - column, end - begin);
      f(row * row_step + column * column_step, column_step, n);
      begin += n;
    }
  }
};
/// The same of elements of type T.
template <class T>
struct HandedOverOf : HandedOver {
  constexpr HandedOverOf(T* first, std::size_t n) : HandedOver{dtype_of<std::remove_const_t<T>>, first, n} {}
};

/// A callable that makes the elements which a rank needs, of type T.
template <class T>
struct MadeOf : HandedOver {};

namespace handing_over {
/// What a library's vectors and matrices can be called with as well is none.
template <class A>
concept Callable = std::is_class_v<std::remove_cv_t<A>> && !requires(A & a) {
  a.size();
};
/// Elements of a tensor from the first of a run on: `[&](std::size_t first, std::span<float> run) { ... }`.
template <class A, class T>
concept Fills = Callable<A> && std::invocable<A&, std::size_t, std::span<T>>;
/// One, by where it stands in the tensor: `[&](std::size_t i) { return x[i]; }`.
template <class A>
concept Gives = Callable<A> && requires(A& a) {
  requires is_element_type<std::remove_cvref_t<decltype(a(std::size_t{}))>>;
};
template <class T, class A>
HandedOver made(A& callable, void (*make)(const void*, std::int64_t, std::int64_t, void*)) {
  HandedOver all{.dtype = dtype_of<T>, .data = &callable};
  all.make = make;
  return all;
}
template <class T, class A>
MadeOf<T> filled(A& callable) {
  return {made<T>(callable, [](const void* a, std::int64_t first, std::int64_t count, void* elements) {
    (*static_cast<A*>(const_cast<void*>(a)))(static_cast<std::size_t>(first),
                                             std::span(static_cast<T*>(elements), static_cast<std::size_t>(count)));
  })};
}
template <class A>
auto given(A& callable) {
  using T = std::remove_cvref_t<decltype(callable(std::size_t{}))>;
  return MadeOf<T>{made<T>(callable, [](const void* a, std::int64_t first, std::int64_t count, void* elements) {
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<T*>(elements)[i] = (*static_cast<A*>(const_cast<void*>(a)))(static_cast<std::size_t>(first + i));
  })};
}
template <class A>
concept Contiguous = requires(A& a) {
  {*std::data(a)};
  { std::size(a) } -> std::convertible_to<std::size_t>;
};
/// As Eigen's matrices and maps, which are asked by what they offer: nothing of Eigen is included here.
template <class A>
concept Matrix = requires(A& a) {
  { A::IsRowMajor == 1 } -> std::convertible_to<bool>;
  { A::IsVectorAtCompileTime == 1 } -> std::convertible_to<bool>;
  { a.rows() } -> std::convertible_to<std::int64_t>;
  { a.cols() } -> std::convertible_to<std::int64_t>;
  { a.innerStride() } -> std::convertible_to<std::int64_t>;
  { a.outerStride() } -> std::convertible_to<std::int64_t>;
};
/// Eigen's tensors; their Layout 0 is column-major.
template <class A>
constexpr bool column_major() {
  if constexpr (requires { static_cast<int>(A::Layout) + A::NumIndices; })
    return static_cast<int>(A::Layout) == 0 && A::NumIndices > 1;
  else
    return false;
}
}  // namespace handing_over

/// What of `given` is handed over. A pointer, whose size nobody knows, and a column-major tensor of Eigen do not
/// compile: one sentence each.
template <class A>
constexpr auto numbers_of(A& given) {
  using Given = std::remove_cvref_t<A>;
  if constexpr (is_element_type<Given>) {
    return HandedOverOf<A>(&given, 1);
  } else if constexpr (std::is_pointer_v<Given>) {
    static_assert(
        !std::is_pointer_v<Given>,
        "parallel: a pointer does not say how many elements there are; give a vector, or std::span(pointer, count)");
    return HandedOverOf<float>(nullptr, 0);
  } else if constexpr (handing_over::Gives<A>) {
    return handing_over::given(given);
  } else if constexpr (handing_over::Fills<A, float>) {
    return handing_over::filled<float>(given);
  } else if constexpr (handing_over::Fills<A, double>) {
    return handing_over::filled<double>(given);
  } else if constexpr (handing_over::Fills<A, int>) {
    return handing_over::filled<int>(given);
  } else if constexpr (handing_over::Fills<A, bfloat16>) {
    return handing_over::filled<bfloat16>(given);
  } else if constexpr (handing_over::Fills<A, float16>) {
    return handing_over::filled<float16>(given);
  } else if constexpr (handing_over::column_major<Given>()) {
    static_assert(!handing_over::column_major<Given>(),
                  "parallel: a column-major tensor, as Eigen's are by default, has its elements in another order; give "
                  "one that is Eigen::RowMajor");
    return HandedOverOf<float>(nullptr, 0);
  } else if constexpr (!handing_over::Contiguous<A>) {
    static_assert(handing_over::Contiguous<A>,
                  "parallel: what is handed over must lie in memory, with data() and size(), or be made; give a "
                  "vector, a std::span, a matrix, or a callable of (std::size_t first, std::span<float> run)");
    return HandedOverOf<float>(nullptr, 0);
  } else if constexpr (!is_element_type<std::remove_cvref_t<decltype(*std::data(given))>>) {
    static_assert(
        is_element_type<std::remove_cvref_t<decltype(*std::data(given))>>,
        "parallel: the elements are none of float, double, bfloat16, float16 and int; hand over one of these, rows of "
        "a vector of vectors one behind the other");
    return HandedOverOf<float>(nullptr, 0);
  } else {
    using T = std::remove_reference_t<decltype(*std::data(given))>;
    HandedOverOf<T> numbers(std::data(given), static_cast<std::size_t>(std::size(given)));
    if constexpr (handing_over::Matrix<Given>) {
      if constexpr (Given::IsVectorAtCompileTime) {
        numbers.row_step = given.innerStride();
      } else {
        numbers.rows = given.rows();
        numbers.columns = given.cols();
        numbers.row_step = Given::IsRowMajor ? given.outerStride() : given.innerStride();
        numbers.column_step = Given::IsRowMajor ? given.innerStride() : given.outerStride();
      }
    }
    return numbers;
  }
}

/// What is handed over for one of several inputs; by default nothing is.
struct HandedInput : HandedOver {
  bool given = false;
  constexpr HandedInput() = default;
  template <class A>
  requires(!std::is_same_v<std::remove_cvref_t<A>, HandedInput>) constexpr HandedInput(A&& whole)
      : HandedOver(numbers_of(whole)), given(true) {}
};

/// Of numbers that a tensor is written into.
template <class T>
constexpr HandedOver to_be_written(const HandedOverOf<T>& numbers) {
  static_assert(!std::is_const_v<T>,
                "parallel: a tensor is written into what is given, which is const; give what can be written");
  return numbers;
}

template <class T>
constexpr HandedOver to_be_written(const MadeOf<T>& made) {
  static_assert(std::is_void_v<T>,
                "parallel: a tensor is written into what is given, which is a callable; give a vector or a std::span");
  return made;
}

/// Throws Misuse where numbers cannot be the whole of a tensor. `what` and `name`: "input " and "0", "the parameter "
/// and "mlp.up".
inline void check_whole(const HandedOver& numbers, const Type& type, std::string_view what, std::string_view name) {
  const auto refused = [&](const std::string& why) {
    return Misuse(std::string(what) + std::string(name) + " is " + text(type) + why);
  };
  const std::int64_t elements = type.layout.elements(), given = static_cast<std::int64_t>(numbers.size);
  if (numbers.dtype != type.dtype)
    throw refused(", but " + std::string(name_of(numbers.dtype)) + " was given; give elements of its type");
  if (numbers.make != nullptr) return;  // it is asked for as many as there are
  if (given != elements)
    throw refused(" and has " + std::to_string(elements) + " elements, but what was given has " +
                  std::to_string(given) + "; give all of the whole tensor, of which a rank has a part");
  if (numbers.data == nullptr)
    throw refused(", but was given a null pointer; give " + std::to_string(elements) + " elements");
  if (numbers.rows < 0) return;
  std::int64_t rows = 1;
  for (int d = 0; d < type.layout.rank() && rows < numbers.rows; ++d) rows *= type.layout.dims[d].size;
  if (rows != numbers.rows)
    throw refused(", but was given a matrix of " + std::to_string(numbers.rows) +
                  " rows, which are not its first dimensions; give one of its shape, or the transpose");
}

}  // namespace parallel::internals
