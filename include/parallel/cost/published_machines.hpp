// Machines as their makers and the literature describe them. Whoever has one measures it; these serve before.
#pragma once
#include <string_view>

#include <parallel/cost/machine.hpp>

namespace parallel {
namespace machines {

/// Of a GPU with Tensor Cores whose data sheet says so much. Rows of f32 are products in TF32.
///   products   80 % of the dense peak: "80-90 %" for optimized GEMM (FlashAttention-2, Dao 2023; FlashAttention-3, Shah et al. 2024)
///   memory     85 % of the data sheet: assumed
///   NVLink     80 % of the line rate of one direction, the rest is NCCL's protocol (nccl-tests on GitHub, #212: 370 of 450 GB/s), and 3.4 us a
///              step (NCCL, src/graph/tuning.cc: hwLat of Ring, Simple)
///   launch     1 us: kernels of 2.9 us follow each other every 3.8 us ("Getting Started with CUDA Graphs", NVIDIA 2019)
///   host       80 % of the line rate of PCIe, one direction, and of the memory's, shared by eight GPUs: assumed; 10 us a copy: assumed
constexpr Machine gpu(const char* name, double tf32, double f64, double half, double attention, double memory,
                      double nvlink, int processors, double pcie, double host) {
  Machine m;
  m.name = name;
  m.processors = processors;
  Rates r;
  r.products[static_cast<int>(DType::f32)] = 0.8 * tf32;
  r.products[static_cast<int>(DType::f64)] = 0.8 * f64;
  for (const DType dtype : {DType::bf16, DType::f16}) {
    r.products[static_cast<int>(dtype)] = 0.8 * half;
    r.attention[static_cast<int>(dtype)] = attention;
  }
  r.memory_bandwidth = 0.85 * memory;
  r.link = {3.4e-6, 0.8 * nvlink};
  m.rates.push_back(r);
  m.links.push_back({axes::host.text(), {10e-6, 0.8 * pcie}});
  m.host_bandwidth = 0.8 * host;
  m.launch = 1e-6;
  m.overlaps = true;
  return m;
}

/// The same GPUs in several hosts: the axes along which a model is usually spread over hosts (Narayanan et al. 2021)
/// lie on the network, where a step takes 14 us (NCCL, hwLat of Ring, Simple) and each GPU has an adapter of its own,
/// of which NCCL's protocol leaves 80 %.
constexpr Machine cluster(Machine m, const char* name, double adapter) {
  m.name = name;
  for (const char* axis : {"data", "stage"}) m.links.push_back({axis, {14e-6, 0.8 * adapter}});
  return m;
}

/// NVIDIA A100 SXM 80GB, data sheet of June 2021: TF32 156, FP64 Tensor Core 19.5, BF16 312 TFLOP/s; 2039 GB/s; NVLink
/// 600 GB/s in both directions together. Attention: backward 63 % of the peak with head size 128 (FlashAttention-2).
/// Its host as in the DGX A100, data sheet: PCIe 4.0 x16; two AMD EPYC 7742 with eight channels of DDR4-3200 each.
inline constexpr Machine a100 = gpu("a100", 156e12, 19.5e12, 312e12, 0.63 * 312e12, 2039e9, 300e9, 108, 31.5e9, 51.2e9);
/// DGX A100, data sheet: ConnectX-6, one 200 Gb/s InfiniBand port for each GPU.
inline constexpr Machine dgx_a100 = cluster(a100, "dgx-a100", 25e9);
/// NVIDIA H100 SXM, data sheet of 2023, its figures "with sparsity" halved: TF32 494.5, BF16 989.5, FP64 Tensor Core 67
/// TFLOP/s; 3.35 TB/s; NVLink 900 GB/s in both directions together. Attention: 35 % of the peak by FlashAttention-2
/// (FlashAttention-3's introduction). Its host as in the DGX H100, data sheet: PCIe 5.0 x16; two Intel Xeon 8480C with
/// eight channels of DDR5-4800 each.
inline constexpr Machine h100 =
    gpu("h100", 494.5e12, 67e12, 989.5e12, 0.35 * 989.5e12, 3.35e12, 450e9, 132, 63e9, 76.8e9);
/// DGX H100, data sheet: ConnectX-7, one 400 Gb/s InfiniBand port for each GPU.
inline constexpr Machine dgx_h100 = cluster(h100, "dgx-h100", 50e9);

inline constexpr const Machine* published[] = {&a100, &dgx_a100, &h100, &dgx_h100};

}  // namespace machines

/// A published machine by its name, or nullptr.
constexpr const Machine* published_machine(std::string_view name) {
  for (const Machine* m : machines::published)
    if (m->name.view() == name) return m;
  return nullptr;
}

}  // namespace parallel
