#include "tests/nccl_trace/socket_messages.h"

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <system_error>
#include <utility>

namespace ghostrank::nccl_trace {
namespace {

constexpr std::size_t kHeader = sizeof(Request::header);

void must(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Fd tcp_socket() {
  Fd s(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  must(s.is_open(), "socket");
  return s;
}

void never_block(const Fd& s) {
  const int on = 1;
  must(fcntl(s.get(), F_SETFL, O_NONBLOCK) == 0, "fcntl");
  setsockopt(s.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

}  // namespace

Fd listen_on(const char* address, sockaddr_in& bound) {
  Fd s = tcp_socket();
  bound = {};
  bound.sin_family = AF_INET;
  if (inet_pton(AF_INET, address, &bound.sin_addr) != 1) {
    errno = EINVAL;
    must(false, address);
  }
  socklen_t length = sizeof bound;
  auto* plain = reinterpret_cast<sockaddr*>(&bound);
  must(bind(s.get(), plain, length) == 0, "bind");
  must(listen(s.get(), SOMAXCONN) == 0, "listen");
  must(getsockname(s.get(), plain, &length) == 0, "getsockname");
  never_block(s);
  return s;
}

Fd connect_to(const sockaddr_in& address) {
  Fd s = tcp_socket();
  must(connect(s.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
       "connect");
  never_block(s);
  return s;
}

Fd accept_from(const Fd& listener) {
  Fd s(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!s.is_open())
    must(would_block(), "accept");
  else
    never_block(s);
  return s;
}

Request* Connection::add(std::unique_ptr<Request> request) {
  requests_.push_back(std::move(request));
  return requests_.back().get();
}

Request* Connection::send(void* data, std::size_t size) {
  auto request = std::make_unique<Request>();
  *request = {true, false, static_cast<std::byte*>(data), size, size, 0};
  return add(std::move(request));
}

Request* Connection::receive(void* data, std::size_t room) {
  auto request = std::make_unique<Request>();
  *request = {false, false, static_cast<std::byte*>(data), room, 0, 0};
  return add(std::move(request));
}

// Moves one message's header, then its data; false when the socket would block.
bool Connection::progress(Request& r) {
  while (r.moved < kHeader + (r.sends || r.moved >= kHeader ? r.size : 0)) {
    const bool in_header = r.moved < kHeader;
    std::byte* at = in_header ? reinterpret_cast<std::byte*>(&r.header) + r.moved
                              : r.data + (r.moved - kHeader);
    const std::size_t left = in_header ? kHeader - r.moved : kHeader + r.size - r.moved;
    const ssize_t n = r.sends ? ::send(socket_.get(), at, left, MSG_NOSIGNAL)
                              : ::recv(socket_.get(), at, left, 0);
    if (n < 0 && would_block()) return false;
    if (n == 0) errno = ECONNRESET;
    must(n > 0, r.sends ? "send" : "recv");
    r.moved += n;
    if (r.sends || r.moved != kHeader) continue;
    if (r.header > r.size) errno = EMSGSIZE;
    must(r.header <= r.size, "a message is larger than its receive");
    r.size = r.header;
  }
  return r.done = true;
}

bool Connection::test(Request* request, std::uint64_t* size) {
  for (const auto& r : requests_)
    if (!r->done && !progress(*r)) break;
  if (!request->done) return false;
  if (size) *size = request->size;
  std::erase_if(requests_, [&](const auto& r) { return r.get() == request; });
  return true;
}

}  // namespace ghostrank::nccl_trace
