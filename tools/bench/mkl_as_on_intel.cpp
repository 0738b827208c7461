// Intel's MKL asks these of itself before it takes kernels of AVX-512, and takes those of AVX2 on other processors,
// though they may be twice as slow there. Loaded before it, this answers for it: PyTorch's matrix products as fast as
// they can be.
extern "C" {
int mkl_serv_intel_cpu() { return 1; }
int mkl_serv_intel_cpu_true() { return 1; }
}
