// Weights as products read them, kept from one use of a step to the next: the first packs them as it would anyway, into
// memory of their own, and the others find them there.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include <parallel/device/host_memory.hpp>
#include <parallel/device/kernel.hpp>

namespace parallel::internals::cpu {

using Index = std::int64_t;

/// Where a product's right operand stands packed, or is to be: tile by tile, those of the same columns one behind the
/// other. Each begins where that many elements stand before it, so parts of a product that threads share have theirs.
template <class T>
struct Panels {
  T* data = nullptr;  ///< null: it is not kept
  bool packed = false;
  explicit operator bool() const { return data != nullptr; }
  /// Of a tile at (row, column) with so many columns, where columns have k elements.
  T* tile(Index row, Index column, Index columns, Index k) const { return data + column * k + row * columns; }
  Panels from(Index element) const { return {data == nullptr ? nullptr : data + element, packed}; }
};

/// One weight, or as many as it has slots: layers, or steps of a Scan.
struct PackedWeight {
  const std::byte* first;  ///< of the first, and bytes from one to the next
  Index stride;
  std::byte* panels;  ///< of the first
  Index bytes;        ///< of each
  const std::int64_t* step;
  std::vector<std::int64_t> packed_in;  ///< of each: in which step

  /// None for what a device around a CPU hands on in a weight's place.
  template <class T>
  Panels<T> of(const void* weights) const {
    const std::size_t i = slot(weights);
    if (weights != first + static_cast<Index>(i) * stride || i >= packed_in.size()) return {};
    return {reinterpret_cast<T*>(panels + static_cast<Index>(i) * bytes), packed_in[i] == *step};
  }
  void note_packed(const void* weights) { packed_in[slot(weights)] = *step; }

 private:
  std::size_t slot(const void* weights) const {
    return stride == 0 ? 0 : static_cast<std::size_t>((static_cast<const std::byte*>(weights) - first) / stride);
  }
};

/// Those of a rank's executor, in one block.
class PackedWeights {
 public:
  explicit PackedWeights(Index bytes) : memory_(bytes) {}
  /// From now on nothing is packed: weights may be others.
  void begin_step() { ++step_; }
  /// Where the weight of this number stands, of so many slots. Products that are alike give the same number.
  PackedWeight* at(int number, const void* first, Index slots, Index stride, Index bytes) {
    const auto i = static_cast<std::size_t>(number);
    if (all_.size() <= i) all_.resize(i + 1);
    if (all_[i] == nullptr) {
      if (used_ + slots * bytes > memory_.bytes())
        throw Failure("weights have no room to be packed in", exit_code::internal);
      all_[i] = std::make_unique<PackedWeight>(PackedWeight{
          .first = static_cast<const std::byte*>(first),
          .stride = stride,
          .panels = memory_.data() + used_,
          .bytes = bytes,
          .step = &step_,
          .packed_in = std::vector<std::int64_t>(static_cast<std::size_t>(slots), -1),
      });
      used_ += slots * bytes;
    }
    return all_[i].get();
  }

 private:
  HostMemory memory_;
  Index used_ = 0;
  std::int64_t step_ = 0;
  std::vector<std::unique_ptr<PackedWeight>> all_{};
};

}  // namespace parallel::internals::cpu
