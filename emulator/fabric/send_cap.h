// The most that this process sends from an interface (safety.max_rate_per_nic), whatever rates are
// emulated: a limit on the real network, shared by all endpoints and sockets bound to it.
//
//   bytes on the wire in any time T  <=  cap * (T + kCredit) + what one call hands over
//
// A message counts with the headers of its frames, down to Ethernet's: those that the kernel cuts a
// stream into at the interface's MTU, or those of datagrams, one each. kReserve of the cap is left
// for what only the kernel knows of: TCP's acknowledgements. What TCP sends again is not counted. A
// call hands over a fragment of 1 MiB (ofi) or a batch of packets.
//
// Units: bits per second, bytes, nanoseconds of CLOCK_MONOTONIC. Threading: any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ghostrank {

class SendCap {
 public:
  static constexpr std::int64_t kCredit = 1'000'000;  // ns; what a late caller may make up for
  static constexpr double kReserve = 0.03;

  SendCap(double bits_per_second, std::uint32_t mtu);

  // Whether something may be handed over now.
  bool is_open(std::int64_t now_ns) const { return now_ns >= opens_ns(); }
  // When that is next.
  std::int64_t opens_ns() const { return next_ns_.load(std::memory_order_relaxed); }
  // So many bytes, in so many datagrams (0: of a stream), have been handed over.
  void sent(std::uint64_t bytes, std::uint64_t datagrams, std::int64_t now_ns);

  // The rate of a long stream's own bytes, without headers.
  double stream_bps() const;
  // The rate of what datagrams of `bytes` carry, `carried` bytes each, if each of them is answered
  // by one of `answer` bytes, for which the interface needs time, too.
  double datagrams_bps(std::uint32_t bytes, std::uint32_t carried, std::uint32_t answer) const;

 private:
  std::uint64_t on_wire(std::uint64_t bytes, std::uint64_t datagrams) const;

  const double bps_;  // without the reserve
  const std::uint32_t mtu_;
  std::atomic<std::int64_t> next_ns_{0};
};

// The cap of the interface that a socket bound to `address` inside the namespace uses, one for all
// that ask in this process. Throws Error(environment) if the namespace cannot be entered.
std::shared_ptr<SendCap> send_cap_of(const std::string& network_namespace,
                                     const std::string& address, double bits_per_second);

}  // namespace ghostrank
