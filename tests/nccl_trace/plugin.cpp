// A network plugin for NCCL that carries messages over TCP and writes down every send. With it, one
// machine with one GPU can record what NCCL sends over a network (README.md).
//
//   GHOSTRANK_TRACE          folder for the file trace.RANK (form: trace.h)
//   RANK, WORLD_SIZE         as torchrun sets them
//   GHOSTRANK_TRACE_ADDRESS  address to listen on; 127.0.0.1 unless set
//   GHOSTRANK_TRACE_NICS     how many NICs NCCL is told of; 1 unless set
//   GHOSTRANK_TRACE_MEGABITS rate of each that NCCL is told, in Mb/s; 100,000 unless set
//
// Threading: NCCL uses a connection from one thread at a time; the file has a lock.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>

#include "tests/nccl_trace/net_v8.h"
#include "tests/nccl_trace/socket_messages.h"

namespace ghostrank::nccl_trace {
namespace {

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && *value ? value : otherwise;
}

int number(const char* name, const char* otherwise) {
  return std::atoi(variable(name, otherwise).c_str());
}

int own_rank() { return number("RANK", "0"); }

class TraceFile {
 public:
  TraceFile() {
    const std::string path =
        variable("GHOSTRANK_TRACE", ".") + "/trace." + std::to_string(own_rank());
    file_ = std::fopen(path.c_str(), "w");
    if (!file_) {
      std::fprintf(stderr, "ghostrank trace: cannot write %s\n", path.c_str());
      return;
    }
    line("rank " + std::to_string(own_rank()) + " of " + variable("WORLD_SIZE", "1"));
  }
  ~TraceFile() {
    if (file_) std::fclose(file_);
  }
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void line(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (file_) std::fprintf(file_, "%s\n", text.c_str());
  }
  void flush() {
    const std::lock_guard lock(mutex_);
    if (file_) std::fflush(file_);
  }
  int next_connection() {
    const std::lock_guard lock(mutex_);
    return connections_++;
  }
  bool good() const { return file_ != nullptr; }

 private:
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
  int connections_ = 0;
};

TraceFile& trace() {
  static TraceFile file;
  return file;
}

struct Handle {  // listen() passes it to connect() through NCCL
  sockaddr_in address;
  int rank;
};
static_assert(sizeof(Handle) <= kHandleBytes);

struct Endpoint {
  Connection connection;
  int number;  // in the trace; -1 for a receiver
};

struct Pending {
  Endpoint* endpoint;
  Request* request;
};

// No exception may reach NCCL.
template <typename Body>
int guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "ghostrank trace: rank %d: %s\n", own_rank(), e.what());
    return kSystemError;
  }
}

int init(Logger) { return trace().good() ? kSuccess : kSystemError; }

constexpr int kMostNics = 16;

int devices(int* count) {
  *count = std::clamp(number("GHOSTRANK_TRACE_NICS", "1"), 1, kMostNics);
  return kSuccess;
}

int get_properties(int device, NetProperties* p) {
  static std::array<std::string, kMostNics> names = [] {
    std::array<std::string, kMostNics> all;
    for (int i = 0; i < kMostNics; ++i) all[i] = "ghostrank-trace" + std::to_string(i);
    return all;
  }();
  const auto guid = static_cast<std::uint64_t>(device) + 1;
  const int megabits = number("GHOSTRANK_TRACE_MEGABITS", "100000");
  *p = {names[device].data(), nullptr, guid, kHostMemory, 0, megabits, 0, 0, 65'536, 1, 0, 0};
  return kSuccess;
}

int listen(int, void* handle, void** listener) {
  return guarded([&] {
    Handle h{};
    h.rank = own_rank();
    *listener =
        new Fd(listen_on(variable("GHOSTRANK_TRACE_ADDRESS", "127.0.0.1").c_str(), h.address));
    std::memcpy(handle, &h, sizeof h);
    return kSuccess;
  });
}

int connect(int device, void* handle, void** sender, void**) {
  return guarded([&] {
    Handle h;
    std::memcpy(&h, handle, sizeof h);
    const int number = trace().next_connection();
    *sender = new Endpoint{Connection(connect_to(h.address)), number};
    trace().line("connect " + std::to_string(number) + " " + std::to_string(h.rank) + " " +
                 std::to_string(device));
    return kSuccess;
  });
}

int accept(void* listener, void** receiver, void**) {
  return guarded([&] {
    *receiver = nullptr;
    Fd s = accept_from(*static_cast<Fd*>(listener));
    if (s.is_open()) *receiver = new Endpoint{Connection(std::move(s)), -1};
    return kSuccess;
  });
}

int register_memory(void*, void*, std::size_t, int kind, void** region) {
  *region = nullptr;
  return kind == kHostMemory ? kSuccess : kInternalError;
}

int register_dma_buffer(void*, void*, std::size_t, int, std::uint64_t, int, void**) {
  return kInternalError;
}

int deregister_memory(void*, void*) { return kSuccess; }

int isend(void* sender, void* data, int size, int, void*, void** request) {
  return guarded([&] {
    auto& endpoint = *static_cast<Endpoint*>(sender);
    *request = nullptr;
    if (endpoint.connection.under_way() >= kMaxRequests) return kSuccess;
    trace().line("send " + std::to_string(endpoint.number) + " " + std::to_string(size));
    Request* sent = endpoint.connection.send(data, static_cast<std::size_t>(size));
    *request = new Pending{&endpoint, sent};
    return kSuccess;
  });
}

int irecv(void* receiver, int n, void** data, int* sizes, int*, void**, void** request) {
  if (n != 1) return kInternalError;
  return guarded([&] {
    auto& endpoint = *static_cast<Endpoint*>(receiver);
    *request = nullptr;
    if (endpoint.connection.under_way() >= kMaxRequests) return kSuccess;
    Request* received = endpoint.connection.receive(data[0], static_cast<std::size_t>(sizes[0]));
    *request = new Pending{&endpoint, received};
    return kSuccess;
  });
}

int iflush(void*, int, void**, int*, void**, void** request) {
  *request = nullptr;
  return kSuccess;
}

int test(void* request, int* done, int* sizes) {
  return guarded([&] {
    auto* pending = static_cast<Pending*>(request);
    std::uint64_t size = 0;
    *done = pending->endpoint->connection.test(pending->request, &size) ? 1 : 0;
    if (!*done) return kSuccess;
    if (sizes) *sizes = static_cast<int>(size);
    delete pending;
    return kSuccess;
  });
}

int close_endpoint(void* endpoint) {
  delete static_cast<Endpoint*>(endpoint);
  trace().flush();
  return kSuccess;
}

int close_listener(void* listener) {
  delete static_cast<Fd*>(listener);
  return kSuccess;
}

}  // namespace

// Lets the caller write a mark between the sends before and after it.
extern "C" __attribute__((visibility("default"))) void ghostrank_trace_mark(const char* text) {
  trace().line(std::string("mark ") + text);
  trace().flush();
}

extern "C" __attribute__((visibility("default"))) const NetPlugin ncclNetPlugin_v8;
const NetPlugin ncclNetPlugin_v8{"ghostrank-trace",
                                 init,
                                 devices,
                                 get_properties,
                                 listen,
                                 connect,
                                 accept,
                                 register_memory,
                                 register_dma_buffer,
                                 deregister_memory,
                                 isend,
                                 irecv,
                                 iflush,
                                 test,
                                 close_endpoint,
                                 close_endpoint,
                                 close_listener,
                                 nullptr,
                                 nullptr};

}  // namespace ghostrank::nccl_trace
