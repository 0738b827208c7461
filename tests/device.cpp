#include "device.hpp"

#include <parallel/device/cpu.hpp>

namespace tests {

using namespace parallel;

Kernel Device::kernel(const Operation& operation, const Call& call) const { return Cpu{}.kernel(operation, call); }
void Device::copy(const View& to, const View& from) { Cpu::copy(to, from); }
void Device::zero(const View& view) { Cpu::zero(view); }
void Device::copy_overlap(const View& from, const View& to) { Cpu::copy_overlap(from, to); }
void Device::pack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) { Cpu::pack(from, to, outer, n, inner, bytes); }
void Device::unpack(const void* from, void* to, std::int64_t outer, std::int64_t n, std::int64_t inner, int bytes) { Cpu::unpack(from, to, outer, n, inner, bytes); }

}  // namespace tests
