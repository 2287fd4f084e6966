// NCCL's profiler interface, versions 1 to 6, as far as this plugin uses it. NCCL looks in the
// library for `ncclProfiler_v6`, then v5 and so on: 2.23 knows v1, 2.24 v2, 2.26 v3, 2.27 v4, 2.28
// v5, 2.29 v6. Names are ours; order, types and sizes of the fields are NCCL's (BSD-3,
// src/include/plugin/profiler).
//
// Every function returns 0 (success).
#pragma once

#include <cstddef>
#include <cstdint>
#include <sys/types.h>

namespace ghostrank::nccl_profiler {

using NcclResult = int;

// Kinds of events: bits of the mask that init() returns, and `type` of a description.
enum EventKind : int {
  kColl = 1 << 1,
  kP2p = 1 << 2,
  kProxyOp = 1 << 3,
  kProxyStep = 1 << 4,
  kKernelChannel = 1 << 6,   // from v3 on
  kCopyEngineColl = 1 << 12  // from v6 on
};

// States that record() uses. Of a step's states, kSendWait and kRecvWait give network_us.
enum EventState : int {
  kSendWait = 9,  // of a step: its bytes are known and handed to the network
  kRecvWait = 10,
  kRecvFlushWait = 11,  // of a step: its bytes have arrived
  kRecvGpuWait = 12,
  kKernelStop = 22
};

struct ProxyOp {
  pid_t pid;  // of the process whose call it serves
  std::uint8_t channel;
  int peer, steps, chunk_bytes, is_send;
};
struct ProxyStep {
  int step;
};
struct KernelChannel {
  std::uint8_t channel;
  std::uint64_t timer;  // of the GPU, in ns; v3 has none
};

namespace v1 {
struct Coll {
  const char* name;
  std::uint64_t comm_hash, number;
  std::uint8_t func;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  std::uint8_t type;
  std::uint32_t op;
  std::size_t traffic_bytes;
  std::uint8_t channels, warps, algorithm, protocol;
  int is_collnet, is_nvls;
};
struct P2p {
  const char* name;
  std::uint64_t comm_hash;
  std::uint8_t func;
  void* buffer;
  std::uint8_t type;
  std::size_t count;
  int peer;
};
struct Event {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
  };
};
union State {
  struct {
    std::size_t bytes;  // sent or received by the operation until now
    int steps;
  } proxy;
};
}  // namespace v1

namespace v2 {
struct Coll {
  const char* name;
  std::uint64_t comm_hash, number;
  const char* func;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* type;
  std::size_t traffic_bytes;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2p {
  const char* name;
  std::uint64_t comm_hash;
  const char* func;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
};
struct Event {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
  };
};
using State = v1::State;
}  // namespace v2

namespace v3 {
struct Coll {
  const char* name;
  std::uint64_t comm_hash, number;
  const char* func;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct Event {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    v2::P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
    KernelChannel kernel;
  };
};
using State = v1::State;
}  // namespace v3

namespace v4 {
struct Coll {
  std::uint64_t number;
  const char* func;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* type;
  std::uint8_t channels, warps;
  const char *algorithm, *protocol;
};
struct P2p {
  const char* func;
  void* buffer;
  const char* type;
  std::size_t count;
  int peer;
  std::uint8_t channels;
};
struct Event {
  std::uint8_t type;
  void* parent;
  int rank;
  union {
    Coll coll;
    P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
    KernelChannel kernel;
  };
};
union State {
  struct {
    std::size_t bytes;
  } step;
  struct {
    std::uint64_t timer;
  } kernel;
};
}  // namespace v4

// From v5 on a call's description ends in its group, which is not used here.
namespace v5 {
struct Event {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    v4::Coll coll;
    v4::P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
    KernelChannel kernel;
  };
};
using State = v4::State;
}  // namespace v5

namespace v6 {
struct CopyEngineColl {
  std::uint64_t number;
  const char* func;
  const void* send;
  void* recv;
  std::size_t count;
  int root;
  const char* type;
};
struct Event {
  std::uint64_t type;
  void* parent;
  int rank;
  union {
    v4::Coll coll;
    v4::P2p p2p;
    ProxyOp proxy;
    ProxyStep step;
    KernelChannel kernel;
    CopyEngineColl copy_engine;
  };
};
using State = v4::State;
}  // namespace v6

// v1 to v3: init(context, mask). v4: init(context, mask, name, hash, nodes, ranks, rank, logger).
// v5 and v6: init(context, id, mask, name, nodes, ranks, rank, logger).
template <typename Init, typename Event, typename State>
struct Plugin {
  const char* name;
  Init init;
  NcclResult (*start)(void* context, void** handle, Event* event);
  NcclResult (*stop)(void* handle);
  NcclResult (*record)(void* handle, int state, State* arguments);
  NcclResult (*finalize)(void* context);
};
using InitV1 = NcclResult (*)(void** context, int* mask);
using InitV4 = NcclResult (*)(void** context, int* mask, const char* name, std::uint64_t hash,
                              int nodes, int ranks, int rank, void* logger);
using InitV5 = NcclResult (*)(void** context, std::uint64_t id, int* mask, const char* name,
                              int nodes, int ranks, int rank, void* logger);
using PluginV1 = Plugin<InitV1, v1::Event, v1::State>;
using PluginV2 = Plugin<InitV1, v2::Event, v2::State>;
using PluginV3 = Plugin<InitV1, v3::Event, v3::State>;
using PluginV4 = Plugin<InitV4, v4::Event, v4::State>;
using PluginV5 = Plugin<InitV5, v5::Event, v5::State>;
using PluginV6 = Plugin<InitV5, v6::Event, v6::State>;

}  // namespace ghostrank::nccl_profiler
