/* What libghostrank-cuda.so does for `ghostrank calibrate device`: it runs kernels on a GPU and
 * says how long they took. Plain C: the command needs no CUDA, and loads the library only for that
 * verb.
 *
 * Functions with an `error` (of GHOSTRANK_CUDA_ERROR bytes) return 0, or put the reason there and
 * return GHOSTRANK_CUDA_UNSUPPORTED if this GPU or cuBLASLt has no such kernel, else
 * GHOSTRANK_CUDA_FAILED. Threading: one thread; the GPU's settings are left alone.
 */
#ifndef GHOSTRANK_TOOLS_CUDA_INTERFACE_H
#define GHOSTRANK_TOOLS_CUDA_INTERFACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GHOSTRANK_CUDA_ABI = 1, GHOSTRANK_CUDA_ERROR = 512 };
enum { GHOSTRANK_CUDA_FAILED = 1, GHOSTRANK_CUDA_UNSUPPORTED = 2 };

/* Types of operands; results have the operands' type, those of fp8 are bf16. */
enum GhostrankCudaType {
  GHOSTRANK_CUDA_BF16,
  GHOSTRANK_CUDA_FP16,
  GHOSTRANK_CUDA_TF32,
  GHOSTRANK_CUDA_FP32,
  GHOSTRANK_CUDA_FP8
};

/* How a product's operands lie in memory, as in profiles/device/kernels/shapes.h. */
enum GhostrankCudaOperands {
  GHOSTRANK_CUDA_FORWARD, /* m x k, n x k */
  GHOSTRANK_CUDA_INPUT,   /* m x k, k x n */
  GHOSTRANK_CUDA_WEIGHT   /* k x m, k x n */
};

enum GhostrankCudaKind {
  GHOSTRANK_CUDA_PRODUCT,   /* `batch` results of m x n, by cuBLASLt */
  GHOSTRANK_CUDA_COPY,      /* reads bytes / 2, writes bytes / 2 */
  GHOSTRANK_CUDA_OPTIMIZER, /* Adam on float32: of 28 bytes of a parameter, 16 are read */
  GHOSTRANK_CUDA_EMPTY      /* does nothing: the time from the start of a kernel to the next */
};

struct GhostrankCudaKernel {
  int32_t kind;
  int32_t type, operands; /* of a product */
  int64_t m, n, k, batch; /* of a product */
  int64_t bytes;          /* of the others: read and written together */
};

struct GhostrankCudaTime {
  double seconds;      /* from the start of a kernel to the start of the next, the median */
  double host_seconds; /* the host's time to launch one */
  int32_t runs;        /* medians of so many, */
  int32_t repeats;     /* each the mean of so many kernels in a row */
  int32_t sm_mhz;      /* the multiprocessors' clock meanwhile; 0: not known */
};

struct GhostrankCudaGpu {
  char name[256];  /* "NVIDIA H200" */
  char driver[64]; /* "580.95.05"; empty: not known */
  int32_t cuda;    /* the runtime's version: 13000 */
  int32_t cublas;  /* cuBLASLt's: 130002 */
  int32_t multiprocessors, capability_major, capability_minor;
  int32_t sm_mhz, memory_mhz; /* the highest clocks */
  int32_t bus_bits;           /* of the memory, at two transfers a clock */
  int64_t memory_bytes, l2_bytes;
};

/* The library's GHOSTRANK_CUDA_ABI. */
int32_t ghostrank_cuda_abi(void);

/* Takes GPU `device`, as CUDA numbers them, and describes it. */
int32_t ghostrank_cuda_open(int32_t device, struct GhostrankCudaGpu* gpu, char* error);

/* Measures one kernel, for about `seconds`, at least three times. The GPU rests between the runs,
 * `rest` times as long as they take. */
int32_t ghostrank_cuda_time(const struct GhostrankCudaKernel* kernel, double seconds, double rest,
                            struct GhostrankCudaTime* time, char* error);

#ifdef __cplusplus
}
#endif

#endif
