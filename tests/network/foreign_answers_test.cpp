// Whatever answers at a job's switch address but is no switch is named before the job sends bytes.
#include <arpa/inet.h>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <functional>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>

#include "emulator/host/network_namespace.h"
#include "tests/network/switched_hosts.h"

namespace ghostrank {
namespace {

using testing::kHosts;
using testing::Lab;
using testing::shell;
using testing::SwitchedHosts;

using Bytes = std::vector<std::byte>;
using Answer = std::function<Bytes(Bytes)>;  // to what came

constexpr std::uint16_t kPort = 48864;  // of SwitchML's switches

// Calls `serve` on a thread of its own whenever the socket is readable.
class Served {
 public:
  Served(Fd fd, std::function<void(int fd)> serve)
      : fd_(std::move(fd)), thread_([this, serve = std::move(serve)] {
          for (pollfd look{fd_.get(), POLLIN, 0}; !over_;)
            if (poll(&look, 1, 20) > 0) serve(fd_.get());
        }) {}
  ~Served() { over_ = true; }

 private:
  const Fd fd_;
  std::atomic<bool> over_{false};
  std::jthread thread_;
};

template <typename Address>
Fd bound(int family, int type, const Address& address) {
  Fd fd(socket(family, type | SOCK_CLOEXEC, 0));
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

// Sends an answer back for every packet that comes to the switch's port in this namespace.
Served answers_to_packets(const std::string& space, Answer answer) {
  const InNamespace inside(space);
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(kPort);
  inet_pton(AF_INET, "10.77.0.200", &here.sin_addr);
  return {bound(AF_INET, SOCK_DGRAM, here), [answer = std::move(answer)](int fd) {
            Bytes packet(2048);
            sockaddr_in from{};
            socklen_t size = sizeof from;
            const ssize_t n = recvfrom(fd, packet.data(), packet.size(), 0,
                                       reinterpret_cast<sockaddr*>(&from), &size);
            if (n <= 0) return;
            packet.resize(static_cast<std::size_t>(n));
            packet = answer(std::move(packet));
            sendto(fd, packet.data(), packet.size(), 0, reinterpret_cast<const sockaddr*>(&from),
                   size);
          }};
}

// Answers every line that comes to a control socket.
Served answers_to_lines(const std::string& path, const std::string& line) {
  sockaddr_un here{};
  here.sun_family = AF_UNIX;
  std::strncpy(here.sun_path, path.c_str(), sizeof here.sun_path - 1);
  Fd fd = bound(AF_UNIX, SOCK_STREAM, here);
  EXPECT_EQ(listen(fd.get(), 4), 0);
  return {std::move(fd), [line](int listening) {
            const Fd client(accept(listening, nullptr, nullptr));
            char heard[4096];
            if (recv(client.get(), heard, sizeof heard, 0) > 0)
              send(client.get(), line.data(), line.size(), MSG_NOSIGNAL);
          }};
}

class ForeignAnswers : public SwitchedHosts {
 protected:
  // A bridge joins the hosts; its own interface has the switch's address.
  void join() {
    for (int h = 0; h < kHosts; ++h)
      ASSERT_EQ(shell(lab->in("sw", "ip link set " + Lab::port(h) + " master br0")), 0);
    ASSERT_EQ(shell(lab->in("sw", "ip address add 10.77.0.200/24 dev br0")), 0);
  }
  // Plays a job that must end before it begins, with this error.
  void expect_refused(const std::string& settings, const std::string& error) {
    EXPECT_EQ(play(job("int32", " -s switch.target=external" + settings)), 3);
    EXPECT_NE(said().find(error), std::string::npos) << said();
    EXPECT_FALSE(std::filesystem::exists(lab->file("result.json")));
  }
};

TEST_F(ForeignAnswers, ArePacketsOfAnotherForm) {
  join();
  const std::string form =
      "the switch at switch.address 10.77.0.200 answers with packets of another form than the "
      "scheme's (";
  {
    const Served version = answers_to_packets(lab->switch_space(), [](Bytes packet) {
      packet[0] ^= std::byte{0x80};  // its first bits are the type of packet
      return packet;
    });
    expect_refused("", form);
    EXPECT_NE(said().find("let switch.packet_elements and its program agree"), std::string::npos)
        << said();
  }
  {
    const Served size = answers_to_packets(lab->switch_space(), [](Bytes packet) {
      packet[0] &= std::byte{0xf8};  // 32 elements, in place of 256
      packet.resize(10 + 4 * 32);
      return packet;
    });
    expect_refused("", form);
  }
  const Served nonsense =
      answers_to_packets(lab->switch_space(), [](const Bytes&) { return Bytes(5); });
  expect_refused("", form);
}

TEST_F(ForeignAnswers, AreNoneWhereItOnlyForwards) {
  join();
  expect_refused("", "does not answer: rank 0 has no result for 32 of 32 slots");
  for (const char* help : {"check that the switch runs", "in packets of 256 elements",
                           "and that UDP port 48864 passes"})
    EXPECT_NE(said().find(help), std::string::npos) << said();
}

TEST_F(ForeignAnswers, AreLinesOfNoSwitch) {
  const std::string path = lab->file("other.sock");
  const Served other = answers_to_lines(path, "220 mail.example.org ESMTP\n");
  expect_refused(
      " -s switch.socket=" + path,
      "the switch at " + path + " does not answer as one: it answers '220 mail.example.org ESMTP'");
}

}  // namespace
}  // namespace ghostrank
