#include "tools/benchmarks/peers/bare_libfabric.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include <rdma/fi_cm.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include "emulator/fabric/ofi/open.h"
#include "switch/ports/fd.h"

namespace ghostrank::bench {
namespace {

constexpr std::size_t kSendWindow = 32, kReceiveWindow = 128;

void check(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "bench: %s failed\n", what);
  _exit(1);
}

// Each side sends a text and gets the other's.
std::string traded(int fd, const std::string& mine) {
  const auto size = static_cast<std::uint32_t>(mine.size());
  check(write(fd, &size, sizeof size) == sizeof size, "write");
  check(write(fd, mine.data(), size) == static_cast<ssize_t>(size), "write");
  std::uint32_t other = 0;
  check(read(fd, &other, sizeof other) == sizeof other, "read");
  std::string text(other, '\0');
  check(recv(fd, text.data(), other, MSG_WAITALL) == static_cast<ssize_t>(other), "recv");
  return text;
}

struct Side {
  OfiOpened opened;
  fi_addr_t peer = 0;
  std::vector<char> buffer;
  std::vector<fi_context2> contexts = std::vector<fi_context2>(kReceiveWindow);

  Side(const std::string& provider, std::uint64_t bytes, int fd)
      : opened(open_ofi(options(provider))), buffer(bytes + 1) {
    std::string name(256, '\0');
    std::size_t length = name.size();
    check(fi_getname(&opened.endpoints[0].handle->fid, name.data(), &length) == 0, "fi_getname");
    name.resize(length);
    const std::string other = traded(fd, name);
    check(fi_av_insert(opened.domain.av.get(), other.data(), 1, &peer, 0, nullptr) == 1,
          "fi_av_insert");
  }

  static OfiOptions options(const std::string& provider) {
    OfiOptions o;
    o.provider = provider;
    o.endpoints[0].address = "127.0.0.1";
    return o;
  }

  void move(bool sends, std::uint64_t bytes, std::uint64_t count) {
    const std::size_t window = sends ? kSendWindow : kReceiveWindow;
    std::array<fi_cq_msg_entry, 64> entries;
    fid_ep* endpoint = opened.endpoints[0].handle.get();
    for (std::uint64_t posted = 0, done = 0; done < count;) {
      while (posted < count && posted - done < window) {
        fi_context2* context = &contexts[posted % window];
        const ssize_t rc =
            sends ? fi_send(endpoint, buffer.data(), bytes, nullptr, peer, context)
                  : fi_recv(endpoint, buffer.data(), bytes, nullptr, FI_ADDR_UNSPEC, context);
        if (rc == -FI_EAGAIN) break;
        check(rc == 0, sends ? "fi_send" : "fi_recv");
        ++posted;
      }
      const ssize_t n = fi_cq_read(opened.domain.cq.get(), entries.data(), entries.size());
      check(n > 0 || n == -FI_EAGAIN, "fi_cq_read");
      if (n > 0) done += static_cast<std::uint64_t>(n);
    }
  }
};

}  // namespace

double bare_stream_seconds(const std::string& provider, std::uint64_t bytes, std::uint64_t count) {
  std::array<int, 2> pair{};
  check(socketpair(AF_UNIX, SOCK_STREAM, 0, pair.data()) == 0, "socketpair");
  std::array<Fd, 2> ends{Fd(pair[0]), Fd(pair[1])};
  const pid_t child = fork();
  check(child >= 0, "fork");
  const bool sends = child > 0;
  const int fd = ends[sends ? 0 : 1].get();
  ends[sends ? 1 : 0].close();
  double seconds = 0;
  {
    Side side(provider, bytes, fd);
    traded(fd, "go");
    const auto began = std::chrono::steady_clock::now();
    side.move(sends, bytes, count);
    side.move(!sends, 1, 1);  // the receiver confirms that it has everything
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    traded(fd, "end");
  }
  if (!sends) _exit(0);
  waitpid(child, nullptr, 0);
  return seconds;
}

}  // namespace ghostrank::bench
