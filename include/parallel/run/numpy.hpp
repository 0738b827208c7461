// A rank's part of a tensor as NumPy has arrays: in a file, or, within a process that Python runs in, in place.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <parallel/device/kernel.hpp>
#include <parallel/file/npy.hpp>
#include <parallel/run/misuse.hpp>

namespace parallel::internals {

namespace numpy {
/// f(T()), for the element type of a part that NumPy can have.
template <class F>
auto of_element(const View& part, F f) {
  if (part.data == nullptr)
    throw Misuse("a rank that has nothing of a tensor has no array of it; ask a rank that has, or look at View::data");
  switch (part.dtype) {
    case DType::f64: return f(double());
    case DType::f16: return f(float16());
    case DType::i32: return f(int());
    case DType::f32: return f(float());
    default:
      throw Misuse(
          "NumPy has no bfloat16; convert the elements, view.span<bfloat16>(), to float, or write safetensors");
  }
}
inline std::vector<std::int64_t> shape_of(const View& part) { return {part.size, part.size + part.rank}; }
}  // namespace numpy

/// A part that lies in the host's memory, as NumPy's __array_interface__ of version 3 describes it, a dictionary of
/// Python's: "{'data': (94837632, False), 'shape': (2, 3), 'typestr': '<f4', 'version': 3}". Nothing is copied: an
/// array that is made of it reads and writes the part in place, as span() does, and must not outlive what the view is
/// of. Throws Misuse where this rank has nothing of the tensor, and for bfloat16.
inline std::string array_interface(const View& part) {
  const FileDType dtype = numpy::of_element(part, []<class T>(T) { return file_dtype_of<T>; });
  return "{'data': (" + std::to_string(reinterpret_cast<std::uintptr_t>(part.data)) +
         ", False), 'shape': " + npy::tuple_of(numpy::shape_of(part)) + ", 'typestr': '" +
         std::string(npy::descr_of(dtype)) + "', 'version': 3}";
}

/// Writes a part that lies in the host's memory as numpy.save does: its shape is the part's, not the tensor's. Throws
/// as write_npy of elements, and Misuse as array_interface.
inline void write_npy(const std::string& file, const View& part) {
  numpy::of_element(part, [&]<class T>(T) { write_npy(file, numpy::shape_of(part), part.span<const T>()); });
}

}  // namespace parallel::internals

namespace parallel {
using internals::array_interface;
using internals::write_npy;
}  // namespace parallel
