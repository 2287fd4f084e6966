// libghostrank-profiler.so: the symbols that NCCL looks up, one for each version of its interface;
// they turn NCCL's events into calls of the recorder. NCCL 2.28.9 has run with v5; only a test has
// called the others, as NCCL does.
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "profiles/capture/nccl/interface.h"
#include "profiles/capture/nccl/recorder.h"

namespace ghostrank::nccl_profiler {
namespace {

constexpr NcclResult kSuccess = 0, kSystemError = 2;

// By NCCL's numbers of functions, types, algorithms and protocols.
constexpr const char* kFuncs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                  "AllReduce", "SendRecv", "Send",      "Recv"};
constexpr const char* kAlgorithms[] = {
    "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"};
constexpr const char* kProtocols[] = {"LL", "LL128", "SIMPLE"};
constexpr std::uint64_t kTypeBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
constexpr std::string_view kTypes[] = {"ncclInt8",     "ncclUint8",      "ncclInt32",
                                       "ncclUint32",   "ncclInt64",      "ncclUint64",
                                       "ncclFloat16",  "ncclFloat32",    "ncclFloat64",
                                       "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};

template <std::size_t N>
std::string_view word(const char* const (&words)[N], std::uint8_t number) {
  return number < N ? words[number] : "";
}
std::string_view word(const char* text) { return text ? text : ""; }

std::uint64_t type_bytes(std::uint8_t type) {
  return type < std::size(kTypeBytes) ? kTypeBytes[type] : 1;
}
std::uint64_t type_bytes(const char* type) {
  for (std::size_t i = 0; i < std::size(kTypes); ++i)
    if (word(type) == kTypes[i]) return kTypeBytes[i];
  return 1;
}

void* as_pointer(Handle handle) { return reinterpret_cast<void*>(handle); }
Handle as_handle(const void* pointer) { return reinterpret_cast<Handle>(pointer); }

bool wants_steps() {
  const char* wish = std::getenv("GHOSTRANK_PROFILER_STEPS");
  return !wish || std::strcmp(wish, "0") != 0;
}

// Exceptions stay here: NCCL is C.
template <typename Work>
NcclResult guarded(Work work) {
  try {
    return work();
  } catch (...) {
    return kSuccess;  // an event that is not recorded; NCCL goes on
  }
}

NcclResult begin(void** context, int* mask, int kinds, CommFacts facts) {
  return guarded([&] {
    *mask = 0;
    Recorder& recorder = Recorder::of_process();
    if (!recorder.works()) return kSystemError;
    *context = as_pointer(recorder.add_comm(std::move(facts)));
    *mask = wants_steps() ? kinds | kProxyStep : kinds;
    return kSuccess;
  });
}

template <int Kinds>
NcclResult init_v1(void** context, int* mask) {
  CommFacts facts;
  facts.kernels = (Kinds & kKernelChannel) != 0;
  return begin(context, mask, Kinds, std::move(facts));
}

NcclResult init_v4(void** context, int* mask, const char* name, std::uint64_t hash, int nodes,
                   int ranks, int rank, void*) {
  return begin(context, mask, kColl | kP2p | kProxyOp | kKernelChannel,
               {hash, name ? name : "", ranks, nodes, rank});
}

template <int Kinds>
NcclResult init_v5(void** context, std::uint64_t id, int* mask, const char* name, int nodes,
                   int ranks, int rank, void*) {
  return begin(context, mask, Kinds, {id, name ? name : "", ranks, nodes, rank});
}

// Facts of calls, by version. Those of v1 to v3 also name the communicator.
CallFacts facts_of(const v1::Coll& c) {
  CallFacts facts;
  facts.func = word(kFuncs, c.func);
  facts.algorithm = word(kAlgorithms, c.algorithm);
  facts.protocol = word(kProtocols, c.protocol);
  facts.number = c.number;
  facts.bytes = c.count * type_bytes(c.type);
  facts.root = c.root;
  facts.channels = c.channels;
  return facts;
}
template <typename Coll>  // from v2 on
CallFacts facts_of(const Coll& c) {
  CallFacts facts;
  facts.func = word(c.func);
  facts.number = c.number;
  facts.bytes = c.count * type_bytes(c.type);
  facts.root = c.root;
  if constexpr (requires { c.channels; }) {
    facts.algorithm = word(c.algorithm);
    facts.protocol = word(c.protocol);
    facts.channels = c.channels;
  } else {
    facts.algorithm = "CE";
    facts.copy_engine = true;
  }
  return facts;
}
template <typename P2p>
CallFacts facts_of_p2p(const P2p& p) {
  CallFacts facts;
  facts.p2p = true;
  if constexpr (std::is_same_v<P2p, v1::P2p>)
    facts.func = word(kFuncs, p.func);
  else
    facts.func = word(p.func);
  facts.bytes = p.count * type_bytes(p.type);
  facts.peer = p.peer;
  if constexpr (requires { p.channels; }) facts.channels = p.channels;
  return facts;
}

template <typename Call>
void learn(Recorder& recorder, Handle comm, const Call& call, int rank) {
  if constexpr (requires { call.comm_hash; }) recorder.learn(comm, call.comm_hash, call.name, rank);
}

template <typename Event>
NcclResult start(void* context, void** handle, Event* event) {
  *handle = nullptr;
  return guarded([&] {
    Recorder& recorder = Recorder::of_process();
    const Handle comm = as_handle(context), parent = as_handle(event->parent);
    Handle made = 0;
    switch (static_cast<std::uint64_t>(event->type)) {
      case kColl:
        learn(recorder, comm, event->coll, event->rank);
        made = recorder.start_call(comm, facts_of(event->coll));
        break;
      case kP2p:
        learn(recorder, comm, event->p2p, event->rank);
        made = recorder.start_call(comm, facts_of_p2p(event->p2p));
        break;
      case kProxyOp: {
        const ProxyOp& op = event->proxy;
        made = recorder.start_proxy(
            comm, parent, {op.pid, op.channel, op.peer, op.steps, op.chunk_bytes, op.is_send != 0});
        break;
      }
      case kProxyStep:
        made = recorder.start_step(parent, event->step.step);
        break;
      case kKernelChannel:
        // v3 has no timer, so the field holds no time.
        if constexpr (requires { event->kernel; })
          made = recorder.start_kernel(parent, event->kernel.channel,
                                       std::is_same_v<Event, v3::Event> ? 0 : event->kernel.timer);
        break;
      case kCopyEngineColl:
        if constexpr (requires { event->copy_engine; })
          made = recorder.start_call(comm, facts_of(event->copy_engine));
        break;
      default:
        break;
    }
    *handle = as_pointer(made);
    return kSuccess;
  });
}

NcclResult stop(void* handle) {
  return guarded([&] {
    if (handle) Recorder::of_process().stop(as_handle(handle));
    return kSuccess;
  });
}

// In v1 to v3, states 0 to 7 report how many bytes a proxy operation has moved so far.
NcclResult record_v1(void* handle, int state, v1::State* arguments) {
  return guarded([&] {
    Recorder& recorder = Recorder::of_process();
    constexpr int kLastOfOperations = 7;
    if (state == kKernelStop)
      recorder.stop_kernel(as_handle(handle), 0);
    else if (state <= kLastOfOperations && arguments)
      recorder.count_bytes(as_handle(handle), arguments->proxy.bytes);
    else
      recorder.move_step(as_handle(handle), state, 0);
    return kSuccess;
  });
}

NcclResult record_v4(void* handle, int state, v4::State* arguments) {
  return guarded([&] {
    Recorder& recorder = Recorder::of_process();
    if (state == kKernelStop)
      recorder.stop_kernel(as_handle(handle), arguments ? arguments->kernel.timer : 0);
    else if (state == kSendWait || state == kRecvWait || state == kRecvFlushWait ||
             state == kRecvGpuWait)
      recorder.move_step(as_handle(handle), state, arguments ? arguments->step.bytes : 0);
    return kSuccess;
  });
}

NcclResult finalize(void* context) {
  return guarded([&] {
    Recorder::of_process().remove_comm(as_handle(context));
    return kSuccess;
  });
}

constexpr const char* kName = "ghostrank";
constexpr int kCalls = kColl | kP2p | kProxyOp;

}  // namespace

extern "C" {
#define EXPORTED __attribute__((visibility("default"), used))
EXPORTED extern const PluginV1 ncclProfiler_v1{kName, init_v1<kCalls>, start<v1::Event>,
                                               stop,  record_v1,       finalize};
EXPORTED extern const PluginV2 ncclProfiler_v2{kName, init_v1<kCalls>, start<v2::Event>,
                                               stop,  record_v1,       finalize};
EXPORTED extern const PluginV3 ncclProfiler_v3{
    kName, init_v1<kCalls | kKernelChannel>, start<v3::Event>, stop, record_v1, finalize};
EXPORTED extern const PluginV4 ncclProfiler_v4{kName, init_v4,   start<v4::Event>,
                                               stop,  record_v4, finalize};
EXPORTED extern const PluginV5 ncclProfiler_v5{
    kName, init_v5<kCalls | kKernelChannel>, start<v5::Event>, stop, record_v4, finalize};
EXPORTED extern const PluginV6 ncclProfiler_v6{
    kName,   init_v5<kCalls | kKernelChannel | kCopyEngineColl>, start<v6::Event>, stop, record_v4,
    finalize};
#undef EXPORTED
}

}  // namespace ghostrank::nccl_profiler
