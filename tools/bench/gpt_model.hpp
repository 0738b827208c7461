// GPT-2's architecture with biases and a tied head, in the sizes that training steps are compared in.
#pragma once
#include <parallel/parallel.hpp>

namespace bench {

using namespace parallel;
using namespace parallel::axes;

/// GPT-2 124M on four windows of 64 tokens.
struct SizeA {
  static constexpr const char* name = "A";
  static constexpr int layers = 12, channels = 768, heads = 12, context = 64, positions = 1024, vocabulary = 50257,
                       batch = 4;
  static constexpr double parameters = 124.4e6;
};
/// 10.8M on eight windows of 256 bytes.
struct SizeC {
  static constexpr const char* name = "C";
  static constexpr int layers = 6, channels = 384, heads = 6, context = 256, positions = 256, vocabulary = 256,
                       batch = 8;
  static constexpr double parameters = 10.8e6;
};

/// 30.0M: C with the vocabulary of A.
struct SizeB : SizeC {
  static constexpr const char* name = "B";
  static constexpr int vocabulary = SizeA::vocabulary;
  static constexpr double parameters = 30.0e6;
};

template <class Size>
struct Norm {
  Parameter<float, Shape<Size::channels>> gain{ones};
  Parameter<float, Shape<Size::channels>> shift{zeros};
  constexpr auto operator()(Distributed auto x) const { return layer_norm(x, gain, shift); }
};

template <class Size>
struct Attention {
  static constexpr int channels = Size::channels, heads = Size::heads, size = channels / heads;
  Parameter<float, Shape<channels, 3, heads / tensor, size>> qkv{normal(0.02)};
  Parameter<float, Shape<3, heads / tensor, size>> qkv_bias{zeros};
  Parameter<float, Shape<heads / tensor, size, channels>> projection{scaled_normal(0.02, Size::layers)};
  Parameter<float, Shape<channels>> projection_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    const auto all = matmul(x, qkv) + qkv_bias;  // f32[batch/data, context/sequence, 3, heads/tensor, size]
    const auto k = to<On<sequence, Broadcast>>(take<2, 1>(all)), v = to<On<sequence, Broadcast>>(take<2, 2>(all));
    return matmul<2>(attention(take<2, 0>(all), k, v), projection) + projection_bias;
  }
};

template <class Size>
struct Feedforward {
  static constexpr int channels = Size::channels;
  Parameter<float, Shape<channels, 4 * channels / tensor>> up{normal(0.02)};
  Parameter<float, Shape<4 * channels / tensor>> up_bias{zeros};
  Parameter<float, Shape<4 * channels / tensor, channels>> down{scaled_normal(0.02, Size::layers)};
  Parameter<float, Shape<channels>> down_bias{zeros};
  constexpr auto operator()(Distributed auto x) const {
    return matmul(gelu(matmul(x, up) + up_bias), down) + down_bias;
  }
};

template <class Size>
struct Block {
  Norm<Size> norm1;
  Attention<Size> attention;
  Norm<Size> norm2;
  Feedforward<Size> mlp;
  constexpr auto operator()(Distributed auto x) const {
    const auto y = x + attention(norm1(x));
    return y + mlp(norm2(y));
  }
};

template <class Size>
struct Gpt {
  static constexpr int rows = Size::vocabulary + Size::vocabulary % 2;  ///< of the table, so that two ranks split it
  Parameter<float, Shape<rows / tensor, Size::channels>> token{normal(0.02)};
  Parameter<float, Shape<Size::positions, Size::channels>> position{normal(0.02)};
  Layers<Size::layers, Block<Size>> blocks;
  Norm<Size> norm;

  constexpr auto operator()(Distributed auto tokens, Distributed auto targets) const {
    const auto hidden =
        to<Shape<Size::batch / data, Size::context / sequence, Size::channels>>(embedding(tokens, token) + positions());
    return mean(cross_entropy<Size::vocabulary>(matmul(norm(blocks(hidden)), transpose(token)), targets));
  }

 private:
  constexpr auto positions() const {
    if constexpr (Size::positions > Size::context)
      return slice<0, 0, Size::context>(position);
    else
      return position;
  }
};

template <class Size>
using Tokens = Tensor<int, Shape<Size::batch / data, Size::context / sequence>>;
template <class Size>
using GptStep = Training<Gpt<Size>, AdamW, Tokens<Size>, Tokens<Size>>;

}  // namespace bench
