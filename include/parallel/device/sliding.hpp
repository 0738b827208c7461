// Windows that move over a rank's part of a tensor [batch, channels, (height,) width], for kernels of every device.
#pragma once
#include <parallel/device/kernel.hpp>
#include <parallel/operation/windows.hpp>

namespace parallel::internals {

/// Along one dimension.
struct Slide {
  std::int64_t extent = 1, window = 1, places = 1, stride = 1, padding = 0;

  /// Where an element of the window at a place lies, perhaps in the padding.
  constexpr std::int64_t at(std::int64_t place, std::int64_t within) const { return place * stride - padding + within; }
  constexpr bool holds(std::int64_t at) const { return at >= 0 && at < extent; }
  /// The first place whose window's element `within` lies at 0 or behind, and the first that lies behind the end.
  constexpr std::int64_t first(std::int64_t within) const { return bounded(padding - within); }
  constexpr std::int64_t last(std::int64_t within) const { return bounded(extent + padding - within); }

 private:
  constexpr std::int64_t bounded(std::int64_t from) const {
    const std::int64_t place = from <= 0 ? 0 : (from + stride - 1) / stride;
    return place < places ? place : places;
  }
};
/// Over height and width; what has no height has one row.
struct Sliding {
  std::int64_t batch, channels, out;  ///< out: of a convolution, the channels of its result
  Slide height, width;

  /// x: what windows move over; y: what they make, or what is made of that backward; `ints` as of Windows.
  Sliding(const View& x, const View& y, const Ints& ints) : batch(x.size[0]), channels(x.size[1]), out(y.size[1]) {
    const Windows windows(x.rank, ints);
    for (int d = 0; d < windows.dims; ++d)
      (d == windows.dims - 1 ? width : height) =
          Slide{x.size[2 + d], ints.size() > 2 * windows.dims ? windows.third(d) : 1, y.size[2 + d], windows.stride(d),
                windows.padding(d)};
  }
  Sliding(const View& x, const View& weight, const View& y, const Ints& ints) : Sliding(x, y, ints) {
    height.window = weight.rank > 3 ? weight.size[2] : 1;
    width.window = weight.size[weight.rank - 1];
  }

  constexpr std::int64_t plane() const { return height.extent * width.extent; }
  constexpr std::int64_t places() const { return height.places * width.places; }
  constexpr std::int64_t window() const { return height.window * width.window; }
};

}  // namespace parallel::internals
