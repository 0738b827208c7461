// What the environment says to CUDA and NCCL, so that the laws of communicators hold.
#pragma once
#include <cstdlib>

namespace parallel::internals::nccl {

/// Sets what the user has not. It counts only before CUDA and NCCL are first used, so every way for ranks to meet
/// begins with it.
inline void settings() {
  // connections are made at set-up: a start does not wait for other ranks
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
  // streams have queues of their own: a message that waits holds up no other stream
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // Kernels are loaded at set-up. Loading one at its first launch may wait for the whole GPU, and so for an exchange
  // whose other rank does the same.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
}

}  // namespace parallel::internals::nccl
