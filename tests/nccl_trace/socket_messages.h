// Messages over TCP sockets that never block: a header with the size, then the bytes. A connection
// goes one way and keeps the order of messages.
//
// Threading: an object belongs to one thread at a time. Errors: std::system_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <netinet/in.h>
#include <utility>

#include "switch/ports/fd.h"

namespace ghostrank::nccl_trace {

// Listens on a free port of `address`; writes address and port to `bound`.
Fd listen_on(const char* address, sockaddr_in& bound);
Fd connect_to(const sockaddr_in& address);
Fd accept_from(const Fd& listener);  // not open: no connection is waiting

struct Request {
  bool sends = false, done = false;
  std::byte* data = nullptr;
  std::uint64_t size = 0;  // a receive: the room, then the message's size
  std::uint64_t header = 0;
  std::size_t moved = 0;  // bytes of header and data together
};

class Connection {
 public:
  explicit Connection(Fd socket) : socket_(std::move(socket)) {}

  Request* send(void* data, std::size_t size);
  Request* receive(void* data, std::size_t room);
  // Moves as many bytes as the socket allows. When the request has ended, returns true, sets `size`
  // and frees the request.
  bool test(Request* request, std::uint64_t* size);
  std::size_t under_way() const { return requests_.size(); }

 private:
  bool progress(Request& request);
  Request* add(std::unique_ptr<Request> request);

  Fd socket_;
  std::deque<std::unique_ptr<Request>> requests_;
};

}  // namespace ghostrank::nccl_trace
