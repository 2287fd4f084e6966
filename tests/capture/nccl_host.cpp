// `nccl_host PLUGIN VERSION RANK RANKS`: calls a profiler plugin as NCCL does in one process of a
// job: a communicator of all ranks and one of two, collectives whose kernels and proxy operations
// go on in another thread after the calls were enqueued, sends and receives. Three iterations. At
// exit, after the plugin's own exit handlers, it reports once more, as a thread of NCCL may.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>

#include "profiles/capture/nccl/interface.h"

namespace {

using namespace ghostrank::nccl_profiler;

int rank, ranks;
std::function<void()> after_exit;

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "nccl_host: %s\n", what);
  std::exit(1);
}
void check(NcclResult result) {
  if (result != 0) fail("the plugin returned an error");
}

struct Words {
  const char *func, *type, *algorithm, *protocol;
  std::uint8_t func_number, type_number, algorithm_number, protocol_number;
};
constexpr Words kAllReduce{"AllReduce", "ncclFloat32", "RING", "SIMPLE", 4, 7, 1, 2};
constexpr Words kAllGather{"AllGather", "ncclInt8", "TREE", "LL", 2, 0, 0, 0};
constexpr Words kSend{"Send", "ncclBfloat16", "", "", 6, 9, 0, 0};
constexpr Words kRecv{"Recv", "ncclBfloat16", "", "", 7, 9, 0, 0};

template <typename Plugin, typename Event, typename State>
class Host {
 public:
  explicit Host(const Plugin& plugin) : plugin_(plugin) {}

  void* init(std::uint64_t id, const char* name, int size, int own) {
    void* context = nullptr;
    check(try_init(&context, id, name, size, own));
    if ((mask_ & (kColl | kP2p | kProxyOp)) != (kColl | kP2p | kProxyOp)) fail("mask");
    return context;
  }

  void* call(void* context, const Words& words, std::uint64_t number, std::size_t count,
             std::uint64_t id, const char* name, int own) {
    Event event;
    std::memset(static_cast<void*>(&event), 0x5a, sizeof event);  // nothing else may be read
    event.type = kColl;
    event.parent = nullptr;
    event.rank = own;
    event.coll.number = number;
    event.coll.count = count;
    event.coll.root = 0;
    event.coll.channels = 2;
    if constexpr (requires { event.coll.comm_hash; }) {
      event.coll.comm_hash = id;
      event.coll.name = name;
    }
    if constexpr (std::is_same_v<Event, v1::Event>) {
      event.coll.func = words.func_number;
      event.coll.type = words.type_number;
      event.coll.algorithm = words.algorithm_number;
      event.coll.protocol = words.protocol_number;
    } else {
      event.coll.func = words.func;
      event.coll.type = words.type;
      event.coll.algorithm = words.algorithm;
      event.coll.protocol = words.protocol;
    }
    return started(context, event);
  }

  void* message(void* context, const Words& words, std::size_t count, int peer, std::uint64_t id,
                const char* name, int own) {
    Event event;
    std::memset(static_cast<void*>(&event), 0x5a, sizeof event);
    event.type = kP2p;
    event.parent = nullptr;
    event.rank = own;
    event.p2p.count = count;
    event.p2p.peer = peer;
    if constexpr (requires { event.p2p.comm_hash; }) {
      event.p2p.comm_hash = id;
      event.p2p.name = name;
    } else {
      event.p2p.channels = 1;
    }
    if constexpr (std::is_same_v<Event, v1::Event>) {
      event.p2p.func = words.func_number;
      event.p2p.type = words.type_number;
    } else {
      event.p2p.func = words.func;
      event.p2p.type = words.type;
    }
    return started(context, event);
  }

  // What the proxy thread reports of a call: kernels of its channels and a send in `steps`
  // messages.
  void progress(void* context, void* call, int channels, int steps, std::size_t bytes) {
    void* kernels[2] = {};
    if constexpr (requires(Event e) { e.kernel; }) {
      for (int c = 0; c < channels; ++c) {
        Event event;
        event.type = kKernelChannel;
        event.parent = call;
        event.kernel = {static_cast<std::uint8_t>(c), timer()};
        kernels[c] = started(context, event);
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    if (steps > 0) send(context, call, getpid(), steps, bytes);
    if constexpr (requires(State s) { s.kernel; }) {
      for (int c = 0; c < channels; ++c) {
        State state;
        state.kernel.timer = timer();
        check(plugin_.record(kernels[c], kKernelStop, &state));
        check(plugin_.stop(kernels[c]));
      }
    } else {
      for (int c = 0; c < channels; ++c) {
        if (!kernels[c]) continue;
        State state{};
        check(plugin_.record(kernels[c], kKernelStop, &state));
        check(plugin_.stop(kernels[c]));
      }
    }
  }

  void send(void* context, void* call, int pid, int steps, std::size_t bytes) {
    Event event;
    event.type = kProxyOp;
    event.parent = call;
    event.rank = rank;
    event.proxy = {pid, 1, (rank + 1) % ranks, steps, 524288, 1};
    void* op = started(context, event);
    for (int s = 0; s < steps; ++s) {
      Event one;
      one.type = kProxyStep;
      one.parent = op;
      one.rank = rank;
      one.step.step = s;
      void* step = started(context, one);
      State state{};
      if constexpr (requires { state.step; }) {
        check(plugin_.record(step, 8, &state));  // waits for the GPU
        state.step.bytes = bytes;
        check(plugin_.record(step, kSendWait, &state));
      } else {
        check(plugin_.record(step, kSendWait, &state));
        state.proxy.bytes = (s + 1) * bytes;
        check(plugin_.record(op, 2, &state));
      }
      check(plugin_.stop(step));
    }
    check(plugin_.stop(op));
  }

  void play() {
    const std::uint64_t world_id = 0xabc, pair_id = 0x100 + static_cast<unsigned>(rank / 2);
    void* world = init(world_id, "world", ranks, rank);
    void* pair = init(pair_id, nullptr, 2, rank % 2);
    void* late = nullptr;
    for (std::uint64_t i = 0; i < 3; ++i) {
      void* reduce = call(world, kAllReduce, i, 1 << 20, world_id, "world", rank);
      check(plugin_.stop(reduce));
      void* gather = call(world, kAllGather, i, 1000, world_id, "world", rank);
      check(plugin_.stop(gather));
      void* out = message(pair, kSend, 500, 1 - rank % 2, pair_id, nullptr, rank % 2);
      void* in = message(pair, kRecv, 500, 1 - rank % 2, pair_id, nullptr, rank % 2);
      check(plugin_.stop(out));
      check(plugin_.stop(in));
      std::thread([&] {
        progress(world, reduce, 2, 3, 700);
        progress(world, gather, 2, 0, 0);
        progress(pair, out, 1, 1, 1000);
        progress(pair, in, 1, 0, 0);
        send(world, reduce, 1, 1, 5);  // of another process; the pointer means nothing here
      }).join();
      late = reduce;
    }
    check(plugin_.finalize(pair));
    check(plugin_.finalize(world));
    progress(world, late, 2, 1, 9);  // nothing may come of it
    world_ = world;
  }

  void report_after_exit() {
    send(world_, nullptr, getpid(), 1, 9);
    void* context = nullptr;
    if (try_init(&context, 1, "late", ranks, rank) != 0) return;
    std::fputs("nccl_host: the plugin records although it has closed its file\n", stderr);
    _exit(1);
  }

 private:
  NcclResult try_init(void** context, std::uint64_t id, const char* name, int size, int own) {
    if constexpr (std::is_same_v<decltype(plugin_.init), InitV1>)
      return plugin_.init(context, &mask_);
    else if constexpr (std::is_same_v<decltype(plugin_.init), InitV4>)
      return plugin_.init(context, &mask_, name, id, 2, size, own, nullptr);
    else
      return plugin_.init(context, id, &mask_, name, 2, size, own, nullptr);
  }
  static std::uint64_t timer() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()) +
           1;
  }
  void* started(void* context, Event& event) {
    const bool wanted = (mask_ & static_cast<int>(event.type)) != 0;
    void* handle = nullptr;
    if (wanted) check(plugin_.start(context, &handle, &event));
    return handle;
  }

  const Plugin& plugin_;
  int mask_ = 0;
  void* world_ = nullptr;
};

template <typename Plugin, typename Event, typename State>
void play(void* library, const char* symbol) {
  const auto* plugin = static_cast<const Plugin*>(dlsym(library, symbol));
  if (!plugin) fail("the plugin lacks the symbol");
  if (std::strcmp(plugin->name, "ghostrank") != 0) fail("another plugin");
  static Host<Plugin, Event, State> host(*plugin);
  host.play();
  after_exit = [] { host.report_after_exit(); };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) fail("PLUGIN VERSION RANK RANKS");
  // Before the plugin registers its own handlers, which then run before this one.
  std::atexit([] {
    if (after_exit) after_exit();
  });
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) fail(dlerror());
  rank = std::atoi(argv[3]);
  ranks = std::atoi(argv[4]);
  switch (std::atoi(argv[2])) {
    case 1:
      play<PluginV1, v1::Event, v1::State>(library, "ncclProfiler_v1");
      break;
    case 2:
      play<PluginV2, v2::Event, v2::State>(library, "ncclProfiler_v2");
      break;
    case 3:
      play<PluginV3, v3::Event, v3::State>(library, "ncclProfiler_v3");
      break;
    case 4:
      play<PluginV4, v4::Event, v4::State>(library, "ncclProfiler_v4");
      break;
    case 5:
      play<PluginV5, v5::Event, v5::State>(library, "ncclProfiler_v5");
      break;
    case 6:
      play<PluginV6, v6::Event, v6::State>(library, "ncclProfiler_v6");
      break;
    default:
      fail("VERSION is 1 to 6");
  }
}
