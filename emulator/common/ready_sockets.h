// The sockets that an epoll instance finds ready. Threading: as epoll_wait(2).
#pragma once

#include <array>
#include <cstdint>
#include <sys/epoll.h>

namespace ghostrank {

// Calls take(data.u64) for some sockets that are ready now; does not wait.
template <class Take>
void for_ready_sockets(int epoll, const Take& take) {
  std::array<epoll_event, 32> ready;
  const int count = epoll_wait(epoll, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) take(ready[i].data.u64);
}

}  // namespace ghostrank
