#include "emulator/control/meet.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <netdb.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include "emulator/common/log.h"
#include "profiles/error.h"

#ifndef GHOSTRANK_VERSION
#define GHOSTRANK_VERSION "unversioned"
#endif

namespace ghostrank {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kHelloPatience{5'000};  // from the connection to the greeting
constexpr milliseconds kTell{1'000};
constexpr milliseconds kRetry{100};
constexpr milliseconds kAttempt{5'000};  // to connect once
constexpr milliseconds kVerdict{2'000};  // process 0 may have begun to wait later than this process
constexpr std::size_t kMaxGreeting = 256;  // connections that have not greeted yet

Error environment_error(const std::string& text) { return Error(text, ErrorKind::environment); }

int poll_ms(steady_clock::duration left) {
  const auto ms = std::chrono::ceil<milliseconds>(left).count();
  return static_cast<int>(std::clamp<long>(ms, 0, 1000));
}

// Whether two builds are one as far as they say: "0.1.0 3cf1..." names a version and a commit; one
// of a source archive, which names none, is one with every build of its version.
bool are_one_build(const std::string& a, const std::string& b) {
  const auto version = [](const std::string& build) { return build.substr(0, build.find(' ')); };
  return a == b || (version(a) == version(b) && (version(a) == a || version(b) == b));
}

void set_up(const Fd& socket) {
  const int on = 1;
  setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct Addresses {
  explicit Addresses(const World& world) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    status = getaddrinfo(world.master_address.c_str(), std::to_string(world.master_port).c_str(),
                         &hints, &list);
  }
  ~Addresses() {
    if (status == 0) freeaddrinfo(list);
  }
  Addresses(const Addresses&) = delete;
  Addresses& operator=(const Addresses&) = delete;
  std::string problem() const {
    return status == 0 ? "" : "cannot resolve it: " + std::string(gai_strerror(status));
  }

  addrinfo* list = nullptr;
  int status = 0;
};

Hello greeting_of(const World& world) {
  Hello h;
  h.build = build_of(world);
  h.job_id = world.job_id;
  h.token = world.token;
  h.hostname = this_hostname();
  h.boot_id = boot_id_of(world);
  h.rank = world.rank;
  h.size = world.size;
  return h;
}

void send_briefly(const Fd& socket, const std::string& frame) {
  send(socket.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

// ---- process 0

struct LocalEnd {
  sockaddr_storage address{};
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};
LocalEnd local_end(const Fd& socket) {
  LocalEnd end;
  socklen_t size = sizeof end.address;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&end.address), &size);
  return end;
}

bool is_loopback(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return reinterpret_cast<const unsigned char*>(
               &reinterpret_cast<const sockaddr_in*>(address)->sin_addr)[0] == 127;
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

[[noreturn]] void throw_unlistenable(const World& world, int error) {
  std::string text = "cannot listen on " + meeting_point(world) + ": " + std::strerror(error);
  if (error == EADDRINUSE)
    text +=
        "; set MASTER_PORT, or GHOSTRANK_PORT where the launcher holds MASTER_PORT, to a free "
        "port on every host";
  else if (error == EADDRNOTAVAIL)
    text += "; MASTER_ADDR must be an address of the host of process 0, which is this one (" +
            this_hostname() + ")";
  else
    text += "; check MASTER_ADDR and MASTER_PORT";
  throw environment_error(text);
}

class Rendezvous {
 public:
  explicit Rendezvous(const World& world)
      : world_(world), own_(greeting_of(world)), deadline_(steady_clock::now() + world.timeout) {
    listener_ = world.listener ? std::move(*world.listener) : listen_at(world);
    members_.resize(world.size);
  }

  Meeting meet() {
    const auto began = steady_clock::now();
    log_info("waiting for ", missing(), " processes at ", meeting_point(world_));
    for (auto next = began + kTell; missing() > 0;) {
      const auto now = steady_clock::now();
      if (now >= deadline_) give_up();
      if (world_.on_wait && now >= next) {
        world_.on_wait(missing_text(), std::chrono::duration<double>(now - began).count());
        next = now + kTell;
      }
      step();
    }
    Meeting met;
    met.strays = strays_;
    log_info("all have met within ",
             std::chrono::duration<double>(steady_clock::now() - began).count(), " s; ", strays_,
             " strays turned away");
    const std::string welcome = encode(Welcome{own_.hostname, own_.boot_id});
    for (std::optional<ControlLink>& member : members_) {
      if (!member) continue;
      send_briefly(member->socket, welcome);
      met.links.push_back(std::move(*member));
    }
    return met;
  }

 private:
  struct Guest {
    Fd socket;
    FrameBuffer in{kMaxHelloBytes};
    steady_clock::time_point until;
    bool done = false;
  };

  std::size_t missing() const {
    return std::count_if(members_.begin() + 1, members_.end(), [](const auto& m) { return !m; });
  }

  void step() {
    std::vector<pollfd> fds{{listener_.get(), POLLIN, 0}};
    for (const Guest& g : guests_) fds.push_back({g.socket.get(), POLLIN, 0});
    std::vector<std::size_t> ranks;
    for (std::size_t r = 1; r < members_.size(); ++r) {
      if (!members_[r]) continue;
      ranks.push_back(r);
      fds.push_back({members_[r]->socket.get(), POLLIN, 0});
    }
    auto until = deadline_;
    for (const Guest& g : guests_) until = std::min(until, g.until);
    poll(fds.data(), fds.size(), poll_ms(until - steady_clock::now()));

    // A member sends nothing before the welcome, so anything readable is its end; it may connect
    // again.
    const std::size_t greeting = guests_.size();
    for (std::size_t i = 0; i < ranks.size(); ++i)
      if (fds[1 + greeting + i].revents != 0) members_[ranks[i]].reset();
    for (std::size_t i = 0; i < greeting; ++i)
      if (fds[1 + i].revents != 0) hear(guests_[i]);
    const auto now = steady_clock::now();
    for (Guest& g : guests_) {
      if (g.done || now < g.until) continue;
      ++strays_;
      g.done = true;
    }
    std::erase_if(guests_, [](const Guest& g) { return g.done; });
    if (fds[0].revents != 0) accept_all();
  }

  void accept_all() {
    for (;;) {
      Fd s(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!s.is_open()) {
        if (errno == EMFILE || errno == ENFILE)
          throw environment_error("no file descriptor left for process 0 of " +
                                  std::to_string(world_.size) + "; raise the limit (ulimit -n)");
        return;
      }
      if (guests_.size() == kMaxGreeting) {
        ++strays_;
        guests_.erase(guests_.begin());
      }
      set_up(s);
      guests_.push_back(
          {std::move(s), FrameBuffer{kMaxHelloBytes}, steady_clock::now() + kHelloPatience});
    }
  }

  void hear(Guest& guest) {
    const bool open = guest.in.receive(guest.socket.get());
    const std::optional<Frame> frame = guest.in.next();
    if (!frame && open && !guest.in.broken()) return;
    guest.done = true;
    const std::optional<Hello> hello = frame ? decode_hello(*frame) : std::nullopt;
    if (hello && hello->rank < members_.size()) drop_if_ended(members_[hello->rank]);
    const std::string refusal = hello ? refusal_of(*hello) : "";
    if (hello && refusal.empty()) {
      members_[hello->rank] = ControlLink{static_cast<int>(hello->rank), std::move(guest.socket),
                                          std::move(guest.in), hello->hostname, hello->boot_id};
      log_info("process ", hello->rank, " on ", hello->hostname, " has come");
      return;
    }
    ++strays_;
    log_warn("a stray was turned away: ", refusal.empty() ? "no greeting of ours" : refusal);
    if (!refusal.empty()) send_briefly(guest.socket, encode(FrameType::refused, refusal));
  }

  // A process that died after its greeting may be restarted and greet before we notice its end.
  static void drop_if_ended(std::optional<ControlLink>& member) {
    char byte = 0;
    if (member && (recv(member->socket.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 ||
                   (errno != EAGAIN && errno != EINTR)))
      member.reset();
  }

  // A peer without the token learns nothing else.
  std::string refusal_of(const Hello& h) const {
    if (h.protocol != kControlProtocol)
      return "it speaks version " + std::to_string(h.protocol) + " of the control protocol, here " +
             std::to_string(kControlProtocol) + "; install the same ghostrank everywhere";
    if (!equal_in_constant_time(h.token, own_.token))
      return "token differs; set GHOSTRANK_TOKEN alike everywhere";
    if (h.job_id != own_.job_id)
      return "job id differs: " + h.job_id + ", here " + own_.job_id +
             "; another job uses this address, or GHOSTRANK_JOB_ID is not alike everywhere";
    if (!are_one_build(h.build, own_.build))
      return "build " + h.build + ", here " + own_.build +
             "; install the same ghostrank everywhere";
    if (h.size != own_.size)
      return "world size " + std::to_string(h.size) + ", here " + std::to_string(own_.size) +
             "; set WORLD_SIZE alike everywhere";
    const std::string rank = "rank " + std::to_string(h.rank);
    if (h.rank >= own_.size) return rank + " is none of " + std::to_string(own_.size);
    if (h.rank == 0 || members_[h.rank])
      return rank + " twice: " + (h.rank == 0 ? own_.hostname : members_[h.rank]->hostname) +
             " has it already";
    return "";
  }

  // "ranks 1, 3 of 4"
  std::string missing_text() const {
    std::string ranks;
    const std::size_t count = missing();
    std::size_t named = 0;
    for (std::size_t r = 1; r < members_.size() && named < 16; ++r) {
      if (members_[r]) continue;
      ranks += (named++ > 0 ? ", " : " ") + std::to_string(r);
    }
    if (named < count) ranks += ", ...";
    return (count == 1 ? "rank" : "ranks") + ranks + " of " + std::to_string(world_.size);
  }

  [[noreturn]] void give_up() {
    std::string text = missing_text() + " did not come to " + meeting_point(world_) + " within " +
                       std::to_string(world_.timeout.count()) + " s";
    for (const std::optional<ControlLink>& member : members_)
      if (member) send_briefly(member->socket, encode(FrameType::refused, text));
    text +=
        "; check that they run, with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, and that "
        "no firewall closes the port (GHOSTRANK_TIMEOUT_S waits longer)";
    if (is_loopback(local_end(listener_).get()))
      text +=
          "; " + world_.master_address + " is a loopback address, which other hosts cannot reach";
    if (strays_ > 0) text += "; " + std::to_string(strays_) + " others were turned away";
    throw environment_error(text);
  }

  const World& world_;
  const Hello own_;
  const steady_clock::time_point deadline_;
  Fd listener_;
  std::vector<Guest> guests_;
  std::vector<std::optional<ControlLink>> members_;  // by rank; [0] stays empty
  std::uint64_t strays_ = 0;
};

// ---- the others

// The kernel may give a connecting socket the very port that it connects to, if nobody on this host
// listens there yet.
bool is_connected_to_itself(const Fd& socket) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &own_size);
  getpeername(socket.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size);
  return own_size == peer_size && std::memcmp(&own, &peer, own_size) == 0;
}

// Returns a connected socket, or an empty one and the reason in `problem`.
Fd try_connect(const World& world, steady_clock::time_point deadline, std::string& problem) {
  const Addresses addresses(world);
  problem = addresses.problem();
  for (const addrinfo* a = addresses.list; a != nullptr; a = a->ai_next) {
    Fd s(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    int error = 0;
    if (connect(s.get(), a->ai_addr, a->ai_addrlen) != 0) error = errno;
    if (error == EINPROGRESS) {
      pollfd fd{s.get(), POLLOUT, 0};
      const auto until = std::min(deadline, steady_clock::now() + kAttempt);
      while (fd.revents == 0 && steady_clock::now() < until)
        poll(&fd, 1, poll_ms(until - steady_clock::now()));
      error = ETIMEDOUT;
      socklen_t size = sizeof error;
      if (fd.revents != 0) getsockopt(s.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0 && !is_connected_to_itself(s)) return s;
    problem = std::strerror(error == 0 ? ECONNREFUSED : error);
  }
  return Fd();
}

// Greets and waits for the answer. Empty, with the reason in `problem`, without a valid answer.
std::optional<ControlLink> greet(const World& world, Fd socket, steady_clock::time_point deadline,
                                 std::string& problem) {
  set_up(socket);
  ControlLink link;
  link.socket = std::move(socket);
  send_briefly(link.socket, encode(greeting_of(world)));
  problem = "it did not say welcome: some process is missing";
  while (steady_clock::now() < deadline) {
    pollfd fd{link.socket.get(), POLLIN, 0};
    if (poll(&fd, 1, poll_ms(deadline - steady_clock::now())) <= 0) continue;
    const bool open = link.in.receive(link.socket.get());
    const std::optional<Frame> frame = link.in.next();
    const bool answered = frame.has_value();
    if (answered) {
      if (frame->type == FrameType::refused)
        throw environment_error("process 0 at " + meeting_point(world) + " refused rank " +
                                std::to_string(world.rank) + ": " + frame->payload);
      if (const std::optional<Welcome> welcome = decode_welcome(*frame)) {
        link.hostname = welcome->hostname;
        link.boot_id = welcome->boot_id;
        return link;
      }
    }
    if (!open || link.in.broken() || answered) {
      problem = "what listens there closed the connection; is it another program?";
      return std::nullopt;
    }
  }
  return std::nullopt;
}

Meeting meet_first(const World& world) {
  const auto deadline = steady_clock::now() + world.timeout;
  std::string problem;
  while (steady_clock::now() < deadline) {
    Fd socket = try_connect(world, deadline, problem);
    if (socket.is_open()) {
      if (std::optional<ControlLink> link =
              greet(world, std::move(socket), deadline + kVerdict, problem)) {
        log_info("met process 0 on ", link->hostname, " at ", meeting_point(world));
        Meeting met;
        met.links.push_back(std::move(*link));
        return met;
      }
    }
    std::this_thread::sleep_for(kRetry);
  }
  throw environment_error("rank " + std::to_string(world.rank) + " did not meet process 0 at " +
                          meeting_point(world) + " within " +
                          std::to_string(world.timeout.count()) + " s: " + problem +
                          "; check that it runs, MASTER_ADDR and MASTER_PORT, and firewalls");
}

}  // namespace

std::string meeting_point(const World& world) {
  const bool brackets = world.master_address.find(':') != std::string::npos;
  return (brackets ? "[" + world.master_address + "]" : world.master_address) + ":" +
         std::to_string(world.master_port);
}

std::string build_of(const World& world) {
  return world.build.empty() ? GHOSTRANK_VERSION : world.build;
}

std::string boot_id_of(const World& world) {
  return world.boot_id.empty() ? this_boot_id() : world.boot_id;
}

Fd listen_at(const World& world) {
  const Addresses addresses(world);
  if (addresses.status != 0)
    throw environment_error("MASTER_ADDR " + world.master_address + ": " + addresses.problem());
  int error = EADDRNOTAVAIL;
  for (const addrinfo* a = addresses.list; a != nullptr; a = a->ai_next) {
    Fd s(socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const int on = 1;
    setsockopt(s.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (s.is_open() && bind(s.get(), a->ai_addr, a->ai_addrlen) == 0 &&
        listen(s.get(), SOMAXCONN) == 0)
      return s;
    error = errno;
  }
  throw_unlistenable(world, error);
}

int port_of(const Fd& socket) {
  const LocalEnd end = local_end(socket);
  return ntohs(end.get()->sa_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(end.get())->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(end.get())->sin_port);
}

Meeting meet_others(const World& world) {
  if (world.master_port <= 0)
    throw Error("a job of " + std::to_string(world.size) +
                " processes needs a port to meet at; set MASTER_PORT");
  return world.rank == 0 ? Rendezvous(world).meet() : meet_first(world);
}

}  // namespace ghostrank
