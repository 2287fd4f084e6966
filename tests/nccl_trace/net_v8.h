// NCCL's interface to network plugins, version 8: the part that a plugin without GPU memory and
// without a collective network needs. NCCL 2.20 and later look for the symbol `ncclNetPlugin_v8`.
// Declared from NCCL's documentation; the layouts must not change.
//
// Results: 0 is success. A call that cannot proceed yet succeeds and leaves its object null.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ghostrank::nccl_trace {

inline constexpr int kSuccess = 0, kSystemError = 2, kInternalError = 3;
inline constexpr int kHostMemory = 1;     // bit of NetProperties::memory
inline constexpr int kHandleBytes = 128;  // size of the handle that listen() fills for connect()
inline constexpr int kMaxRequests = 32;   // in flight per connection

struct NetProperties {
  char* name;
  char* pci_path;  // null: no PCI device
  std::uint64_t guid;
  int memory;         // kinds of memory that a send may use
  int global_memory;  // whether a registration holds for every connection
  int megabits;
  int port;
  float latency;
  int max_connections;
  int max_receives;  // per irecv
  int device_type;   // 0: the host moves the data
  int device_version;
};

using Logger = void (*)(int level, unsigned long flags, const char* file, int line,
                        const char* format, ...);

struct NetPlugin {
  const char* name;
  int (*init)(Logger);
  int (*devices)(int* count);
  int (*get_properties)(int device, NetProperties*);
  int (*listen)(int device, void* handle, void** listener);
  int (*connect)(int device, void* handle, void** sender, void** on_device);
  int (*accept)(void* listener, void** receiver, void** on_device);
  int (*register_memory)(void* connection, void* data, std::size_t size, int kind, void** region);
  int (*register_dma_buffer)(void* connection, void* data, std::size_t size, int kind,
                             std::uint64_t offset, int fd, void** region);
  int (*deregister_memory)(void* connection, void* region);
  int (*isend)(void* sender, void* data, int size, int tag, void* region, void** request);
  int (*irecv)(void* receiver, int n, void** data, int* sizes, int* tags, void** regions,
               void** request);
  int (*iflush)(void* receiver, int n, void** data, int* sizes, void** regions, void** request);
  int (*test)(void* request, int* done, int* sizes);
  int (*close_sender)(void*);
  int (*close_receiver)(void*);
  int (*close_listener)(void*);
  int (*get_device_region)(void* connection, void* region, void** on_device);
  int (*consumed)(void* receiver, int n, void* request);
};

}  // namespace ghostrank::nccl_trace
