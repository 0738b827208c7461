// The step of pipeline_model.hpp by hand over MPI, as Megatron-LM runs it: 1F1B or GPipe, Eigen's products, MPI_Isend
// and MPI_Irecv.
//
// This is the yardstick of the derived step, so it is what a careful engineer would write: all memory is there before
// the first step and lies on huge pages; the next message is asked for before the work on the last one begins, into the
// place where it stays; products add to the gradients in place; and as MPI goes on with a message only while it is
// called, it is called between products.
#pragma once
#include <cmath>
#include <malloc.h>
#include <vector>

#include <mpi.h>

#include <parallel/device/host_memory.hpp>

#include "gelu_by_hand.hpp"
#include "pipeline_model.hpp"

namespace bench {

class PipelineByHand {
 public:
  using Matrix = Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, Eigen::Aligned64>;
  using Row = Eigen::Map<Eigen::Array<float, 1, piped::width>, Eigen::Aligned64>;

  /// `ahead`: how many forwards more than backwards are done before the first backward's; all of them: GPipe.
  PipelineByHand(int stage, int stages, int micro_batches, int ahead)
      : stage_(stage),
        stages_(stages),
        micro_batches_(micro_batches),
        ahead_(std::min(ahead, micro_batches)),
        layers_of_stage_(piped::depth / stages),
        memory_(4 * floats()),
        free_(reinterpret_cast<float*>(memory_.data())),
        inside_(matrix(piped::rows, piped::inner)) {
    mallopt(M_MMAP_THRESHOLD, 256 << 20);  // Eigen packs into memory from malloc: let malloc keep it
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    for (int l = 0; l < layers_of_stage_; ++l) layers_.push_back(layer(stage * layers_of_stage_ + l));
    for (int k = 0; k < flights(); ++k) flights_.push_back(flight());
    for (int k = 0; k < entries(); ++k) entering_.push_back({matrix(piped::rows, piped::width)});
    for (int k = 0; k < gradients; ++k) gradients_.push_back({matrix(piped::rows, piped::width)});
    for (int k = 0; last() && k < micro_batches; ++k)
      targets_.push_back(numbered(piped::target, k, piped::rows, piped::width));
    for (int k = 0; first() && k < micro_batches; ++k) fill(entering_[index(k)].matrix, piped::input, k);
  }

  struct Result {
    double loss, norm;
  };
  /// Forward and backward of all micro-batches, and the norm of the gradients.
  Result step() {
    loss_ = 0;
    for (Layer& l : layers_) l.each([](Trained& t) { t.gradient.setZero(); });
    if (!first()) receive(entering_[0], stage_ - 1, activation);
    if (!last()) receive(gradients_[0], stage_ + 1, gradient);
    for (int k = 0; k < ahead_; ++k) forward(k);
    for (int k = 0; k < micro_batches_; ++k) {
      if (ahead_ + k < micro_batches_) forward(ahead_ + k);
      backward(k);
    }
    for (Flight& f : flights_) wait(f.sent);
    for (Buffer& g : gradients_) wait(g.request);
    double sums[2]{loss_, 0};
    for (Layer& l : layers_) l.each([&](Trained& t) { sums[1] += squares(t.gradient); });
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return {sums[0] / (static_cast<double>(micro_batches_) * piped::rows * piped::width), std::sqrt(sums[1])};
  }
  /// Called by all ranks.
  std::vector<Checked> checked(const Result& result) {
    std::vector<Checked> all{{"loss", result.loss}, {"norm", result.norm}};
    for (int i = 0; i < piped::input; ++i) {
      double total = 0;
      for (Layer& l : layers_) {
        int at = 0;
        l.each([&](Trained& t) { total += at++ == i ? squares(t.gradient) : 0; });
      }
      MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
      all.push_back({piped::numbers[index(i)].name, std::sqrt(total)});
    }
    return all;
  }

 private:
  static constexpr int activation = 0, gradient = 1;  // tags
  static constexpr int gradients = 3;                 ///< one comes, one is worked on, one goes

  struct Trained {
    Matrix value, gradient;
  };
  struct Layer {
    Trained up, up_bias, down, down_bias;
    template <class F>
    void each(F f) {
      for (Trained* t : {&up, &up_bias, &down, &down_bias}) f(*t);
    }
  };
  struct Buffer {
    Matrix matrix;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  /// What is kept of a micro-batch from its forward to its backward.
  struct Flight {
    std::vector<Matrix> before, after, results;  ///< of each layer
    MPI_Request sent = MPI_REQUEST_NULL;         ///< the last result
  };

  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ == stages_ - 1; }
  int flights() const { return std::min(ahead_ + 1, micro_batches_); }
  /// What enters: of all micro-batches where they are given; else one more than in flight, which comes meanwhile.
  int entries() const { return first() ? micro_batches_ : flights() + 1; }
  std::int64_t floats() const {
    const std::int64_t wide = piped::rows * piped::inner, narrow = piped::rows * piped::width;
    const std::int64_t weights = 2 * (2 * piped::width * piped::inner + piped::inner + piped::width);
    return layers_of_stage_ * (flights() * (2 * wide + narrow) + weights) + wide +
           narrow * (entries() + gradients + (last() ? micro_batches_ : 0));
  }
  Matrix matrix(int rows, int columns) {
    float* const begin = free_;
    free_ += rows * columns;  // all are multiples of a cache line
    return Matrix(begin, rows, columns);
  }
  static void fill(Matrix& m, int which, std::int64_t part) {
    for (std::int64_t i = 0; i < m.size(); ++i)
      m.data()[i] = number(piped::numbers[index(which)], which, part * m.size() + i);
  }
  Matrix numbered(int which, int part, int rows, int columns) {
    Matrix m = matrix(rows, columns);
    fill(m, which, part);
    return m;
  }
  Layer layer(int l) {
    const auto trained = [&](int which, int rows, int columns) {
      return Trained{numbered(which, l, rows, columns), matrix(rows, columns)};
    };
    return {trained(0, piped::width, piped::inner), trained(1, 1, piped::inner), trained(2, piped::inner, piped::width),
            trained(3, 1, piped::width)};
  }
  Flight flight() {
    Flight f;
    for (int l = 0; l < layers_of_stage_; ++l) {
      f.before.push_back(matrix(piped::rows, piped::inner));
      f.after.push_back(matrix(piped::rows, piped::inner));
      f.results.push_back(matrix(piped::rows, piped::width));
    }
    return f;
  }
  static Row row(Matrix& m, Eigen::Index r) { return Row(m.data() + r * piped::width); }
  static double squares(const Matrix& m) {
    double total = 0;
    for (Eigen::Index i = 0; i < m.size(); i += piped::width)
      total += static_cast<double>(Eigen::Map<const Eigen::ArrayXf>(m.data() + i, piped::width).square().sum());
    return total;
  }

  void receive(Buffer& b, int from, int tag) {
    MPI_Irecv(b.matrix.data(), static_cast<int>(b.matrix.size()), MPI_FLOAT, from, tag, MPI_COMM_WORLD, &b.request);
  }
  static void send(Matrix& m, int to, int tag, MPI_Request& request) {
    MPI_Isend(m.data(), static_cast<int>(m.size()), MPI_FLOAT, to, tag, MPI_COMM_WORLD, &request);
  }
  static void wait(MPI_Request& request) { MPI_Wait(&request, MPI_STATUS_IGNORE); }
  /// Lets MPI go on with whatever is under way.
  void call_mpi() const {
    int there = 0;
    if (stages_ > 1) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  }

  void forward(int k) {
    Flight& f = flights_[index(k % flights())];
    Buffer& entering = entering_[index(k % entries())];
    wait(entering.request);
    if (!first() && k + 1 < micro_batches_) receive(entering_[index((k + 1) % entries())], stage_ - 1, activation);
    wait(f.sent);
    Matrix* x = &entering.matrix;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& l = layers_[i];
      Matrix &before = f.before[i], &after = f.after[i], &y = f.results[i];
      before.noalias() = *x * l.up.value;
      call_mpi();
      for (int r = 0; r < piped::rows; ++r)
        gelu_by_hand(before.data() + r * piped::inner, after.data() + r * piped::inner, l.up_bias.value.data(),
                     piped::inner);
      for (int r = 0; r < piped::rows; ++r) row(y, r) = row(*x, r) + row(l.down_bias.value, 0);
      y.noalias() += after * l.down.value;
      call_mpi();
      x = &y;
    }
    if (!last()) send(*x, stage_ + 1, activation, f.sent);
  }

  void backward(int k) {
    Flight& f = flights_[index(k % flights())];
    Buffer& buffer = gradients_[index(k % gradients)];
    Matrix& g = buffer.matrix;
    wait(buffer.request);
    if (last()) {
      lose(k, f.results.back(), g);
    } else if (k + 1 < micro_batches_) {
      Buffer& next = gradients_[index((k + 1) % gradients)];
      wait(next.request);
      receive(next, stage_ + 1, gradient);
    }
    for (std::size_t i = layers_.size(); i-- > 0;) {
      Layer& l = layers_[i];
      Matrix& x = i > 0 ? f.results[i - 1] : entering_[index(k % entries())].matrix;
      for (int r = 0; r < piped::rows; ++r) row(l.down_bias.gradient, 0) += row(g, r);
      l.down.gradient.noalias() += f.after[i].transpose() * g;
      call_mpi();
      inside_.noalias() = g * l.down.value.transpose();
      call_mpi();
      for (int r = 0; r < piped::rows; ++r)
        gelu_gradient_by_hand(f.before[i].data() + r * piped::inner, inside_.data() + r * piped::inner,
                              l.up_bias.gradient.data(), piped::inner);
      l.up.gradient.noalias() += x.transpose() * inside_;
      call_mpi();
      if (i > 0 || !first()) g.noalias() += inside_ * l.up.value.transpose();
      call_mpi();
    }
    if (!first()) send(g, stage_ - 1, gradient, buffer.request);
  }
  /// The loss of a micro-batch and the gradient of its result.
  void lose(int k, Matrix& y, Matrix& g) {
    const float scale = 2 / (static_cast<float>(micro_batches_) * piped::rows * piped::width);
    for (int r = 0; r < piped::rows; ++r) {
      row(g, r) = row(y, r) - row(targets_[index(k)], r);
      loss_ += static_cast<double>(row(g, r).square().sum());
      row(g, r) *= scale;
    }
  }

  int stage_, stages_, micro_batches_, ahead_, layers_of_stage_;
  parallel::HostMemory memory_;
  float* free_;
  Matrix inside_;
  std::vector<Layer> layers_{};
  std::vector<Flight> flights_{};
  std::vector<Buffer> entering_{}, gradients_{};
  std::vector<Matrix> targets_{};
  double loss_ = 0;
};

}  // namespace bench
