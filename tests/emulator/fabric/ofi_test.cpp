// The fabric over libfabric between real processes on this host, over every software provider that
// can block; and the reassembly of fragments alone.
#include "emulator/fabric/ofi/ofi.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <sys/eventfd.h>
#include <thread>

#include <gtest/gtest.h>
#include <rdma/fi_cm.h>

#include "emulator/fabric/ofi/fragments.h"
#include "emulator/fabric/ofi/open.h"
#include "tests/emulator/fabric/fabric_support.h"

namespace ghostrank {
namespace {

using namespace std::chrono_literals;
using namespace testing;

class EveryProvider : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Ofi, EveryProvider, kProviders, name_of_provider);

// ---- delivery

constexpr std::uint64_t kSizes[] = {0, 1, 64, 64 << 10, 1 << 20, (3 << 20) + 7};

std::uint64_t seed_of(int source, int target, std::uint32_t ordinal) {
  return (static_cast<std::uint64_t>(source) << 40) + (static_cast<std::uint64_t>(target) << 32) +
         ordinal;
}

// Every process sends every size several times to every other, interleaved at random.
std::string exchange_every_size(const World& world, const std::string& provider) {
  Joined j = join(world, options_for(provider, true));
  std::mt19937 random(static_cast<unsigned>(world.rank));
  std::vector<int> order;
  constexpr std::uint32_t kRounds = 2;
  constexpr std::uint32_t kPerPair = kRounds * static_cast<std::uint32_t>(std::size(kSizes));
  for (int h = 0; h < world.size; ++h)
    if (h != world.rank) order.insert(order.end(), kPerPair, h);
  std::shuffle(order.begin(), order.end(), random);

  std::vector<std::uint32_t> sent(world.size, 0);
  std::vector<Message> arrived;
  const auto size_of = [](int source, std::uint32_t ordinal) {
    return kSizes[(ordinal * 5 + static_cast<std::uint32_t>(source)) % std::size(kSizes)];
  };
  for (const int host : order) {
    const std::uint32_t ordinal = sent[host]++;
    Message m = make_message(size_of(world.rank, ordinal), world.rank, ordinal);
    m.payload = random_bytes(m.header.bytes, seed_of(world.rank, host, ordinal));
    send_all(*j.fabric, host, std::move(m), arrived);
  }
  EXPECT_TRUE(finish(*j.fabric, order.size(), arrived));
  EXPECT_EQ(j.fabric->failure(), "");
  EXPECT_EQ(arrived.size(), order.size());

  std::vector<std::uint32_t> next(world.size, 0);
  for (const Message& m : arrived) {
    const int source = m.header.source;
    EXPECT_EQ(m.header.sequence, next[source]++) << "out of order";
    EXPECT_EQ(m.header.bytes, size_of(source, m.header.sequence));
    EXPECT_EQ(m.header.offset, 0u);
    EXPECT_EQ(m.header.nonce, kNonce);
    const Payload expected =
        random_bytes(m.header.bytes, seed_of(source, world.rank, m.header.sequence));
    EXPECT_TRUE(m.header.bytes == 0 ||
                std::memcmp(m.payload.get(), expected.get(), m.header.bytes) == 0)
        << m.header.bytes << " bytes differ";
  }
  const FabricStats stats = j.fabric->stats();
  EXPECT_EQ(stats.messages_sent, order.size());
  EXPECT_EQ(stats.messages_received, order.size());
  EXPECT_EQ(stats.bytes_sent, stats.bytes_received);  // both sides sent the same sizes
  EXPECT_EQ(stats.strays, 0u);
  j.leave();
  return "";
}

TEST_P(EveryProvider, DeliversEverythingOnceInOrderAndUnchanged) {
  for (const int size : {2, 4})
    expect_all_ok(run_processes(
        size, [](const World& world) { return exchange_every_size(world, GetParam()); }));
}

TEST_P(EveryProvider, SurvivesBothSidesSendingMoreThanFits) {
  expect_all_ok(run_processes(2, [](const World& world) {
    Joined j = join(world, options_for(GetParam()));
    constexpr std::uint32_t kMessages = 2000;
    std::vector<Message> arrived;
    for (std::uint32_t i = 0; i < kMessages; ++i)
      send_all(*j.fabric, 1 - world.rank, make_message(256 << 10, world.rank, i), arrived);
    EXPECT_TRUE(finish(*j.fabric, kMessages, arrived));
    EXPECT_EQ(j.fabric->failure(), "");
    EXPECT_EQ(arrived.size(), kMessages);
    for (std::uint32_t i = 0; i < arrived.size(); ++i) EXPECT_EQ(arrived[i].header.sequence, i);
    EXPECT_EQ(j.fabric->stats().bytes_received, std::uint64_t{kMessages} << 18);
    for (const Message& m : arrived) EXPECT_FALSE(m.payload);
    j.leave();
    return "";
  }));
}

TEST_P(EveryProvider, SaysWhenThereIsNoRoomAndLeavesTheMessageAlone) {
  expect_all_ok(run_processes(2, [](const World& world) {
    Joined j = join(world, options_for(GetParam()));
    if (world.rank == 0) {
      std::uint32_t taken = 0;
      const auto numbered = [](std::uint32_t n) {
        Message m = make_message(1 << 20, 0, n);
        m.payload = random_bytes(m.header.bytes, n);
        return m;
      };
      Message m = numbered(0);
      const std::byte* bytes = m.payload.get();
      while (j.fabric->try_send(1, m) && taken < 1000) {
        m = numbered(++taken);
        bytes = m.payload.get();
      }
      EXPECT_LT(taken, 1000u);
      EXPECT_GT(taken, 0u);
      const Message as_it_was = numbered(taken);
      EXPECT_EQ(std::memcmp(&m.header, &as_it_was.header, sizeof m.header), 0);
      EXPECT_EQ(m.payload.get(), bytes);
      if (m.payload) {
        EXPECT_EQ(std::memcmp(m.payload.get(), as_it_was.payload.get(), m.header.bytes), 0);
      }
      EXPECT_FALSE(j.fabric->idle());
      j.control->all_gather(std::to_string(taken));
      std::vector<Message> none;
      EXPECT_TRUE(finish(*j.fabric, 0, none));
    } else {
      const auto taken = j.control->all_gather("");  // the other side's queue fills before we read
      std::vector<Message> arrived;
      EXPECT_TRUE(finish(*j.fabric, std::stoul(taken.at(0)), arrived));
    }
    j.leave();
    return "";
  }));
}

// ---- strays

TEST_P(EveryProvider, DropsAndCountsWhatHasAnotherNonce) {
  expect_all_ok(run_processes(2, [](const World& world) {
    OfiOptions options = options_for(GetParam());
    if (world.rank == 1) options.nonce = 99;
    Joined j = join(world, options);
    std::vector<Message> arrived;
    if (world.rank == 1) {
      for (std::uint32_t i = 0; i < 10; ++i)
        send_all(*j.fabric, 0, make_message(100 * i, 1, i), arrived);
      EXPECT_TRUE(finish(*j.fabric, 0, arrived));
    } else {
      EXPECT_TRUE(eventually(
          [&] {
            j.fabric->poll(arrived);
            return j.fabric->stats().strays == 10;
          },
          5s));
      EXPECT_TRUE(arrived.empty());
    }
    j.leave();
    return "";
  }));
}

// Sends arbitrary bytes, without our header, to an endpoint.
void send_garbage(const std::string& provider, const std::string& address) {
  OfiOptions options = options_for(provider);
  options.registered = false;  // a stranger need not register its memory
  OfiOpened bare = open_ofi(options);
  fi_addr_t to = FI_ADDR_UNSPEC;
  const std::string raw = address.substr(address.find('\n') + 1);
  ASSERT_EQ(fi_av_insert(bare.domain.av.get(), raw.data(), 1, &to, 0, nullptr), 1);
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> garbage(1 << 18);
  for (std::uint64_t& word : garbage) word = random();
  fi_context2 context{};
  for (const std::size_t bytes : {1, 8, 63, 64, 65, 1000, 65'536, 1'000'000, 2'000'000}) {
    fi_cq_msg_entry entry{};
    ssize_t status = -FI_EAGAIN;
    ASSERT_TRUE(eventually(
        [&] {
          status =
              fi_send(bare.endpoints[0].handle.get(), garbage.data(), bytes, nullptr, to, &context);
          fi_cq_read(bare.domain.cq.get(), &entry, 1);
          return status != -FI_EAGAIN;
        },
        5s));
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(eventually(
        [&] {
          return entry.op_context != nullptr || fi_cq_read(bare.domain.cq.get(), &entry, 1) == 1;
        },
        5s));
  }
  std::this_thread::sleep_for(200ms);  // a "complete" send may still be on its way
}

TEST_P(EveryProvider, CountsGarbageAsStrayAndGoesOn) {
  expect_all_ok(run_processes(3, [](const World& world) {
    const auto control = Control::meet(world);
    if (world.rank == 2) {  // no fabric of ours
      send_garbage(GetParam(), control->all_gather("").at(0));
      control->all_gather("");
      control->close();
      return "";
    }
    const auto fabric = open_ofi_fabric(options_for(GetParam()));
    auto addresses = control->all_gather(fabric->address(0));
    addresses.pop_back();
    fabric->connect(flows_to(addresses, world.rank));
    std::vector<Message> arrived;
    EXPECT_TRUE(eventually(
        [&] {
          fabric->poll(arrived);
          return fabric->stats().strays == (world.rank == 0 ? 9 : 0);
        },
        5s))
        << fabric->stats().strays << fabric->failure();
    send_all(*fabric, 1 - world.rank, make_message(5000, world.rank, 0), arrived);
    EXPECT_TRUE(finish(*fabric, 1, arrived));
    EXPECT_EQ(fabric->failure(), "");
    EXPECT_EQ(arrived.size(), 1u);
    control->all_gather("");
    control->close();
    return "";
  }));
}

// Opens plain TCP connections to the port of provider net, and sends bytes that are not of its
// protocol, half a header, or nothing.
void knock_at_data_port(const std::string& address) {
  sockaddr_in port{};
  const std::string raw = address.substr(address.find('\n') + 1);
  ASSERT_GE(raw.size(), sizeof port);
  std::memcpy(&port, raw.data(), sizeof port);
  ASSERT_EQ(port.sin_family, AF_INET);
  std::mt19937 random(11);
  for (const std::size_t bytes : {0, 1, 4, 16, 100, 5000}) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&port), sizeof port), 0);
    std::string garbage(bytes, '\0');
    for (char& c : garbage) c = static_cast<char>(random());
    if (bytes == 100) garbage.assign(bytes, '\xff');
    send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    std::this_thread::sleep_for(50ms);
    if (bytes != 4) close(fd);  // one stays open and silent
  }
}

TEST(Ofi, StrangersAtTheDataPortLeaveTheRunRightOrEndItWithAnError) {
  const auto outcomes = run_processes(3, [](const World& world) {
    const auto control = Control::meet(world);
    if (world.rank == 2) {
      knock_at_data_port(control->all_gather("").at(0));
      control->all_gather("");
      control->all_gather("");
      control->close();
      return std::string();
    }
    const auto fabric = open_ofi_fabric(options_for("net"));
    auto addresses = control->all_gather(fabric->address(0));
    addresses.pop_back();
    fabric->connect(flows_to(addresses, world.rank));
    std::atomic<bool> knocked = false;
    std::thread waits([&] {
      control->all_gather("");
      knocked = true;
    });
    std::vector<Message> arrived;
    while (!knocked && fabric->failure().empty()) fabric->poll(arrived);
    waits.join();
    send_all(*fabric, 1 - world.rank, make_message(3 << 20, world.rank, 0), arrived);
    const bool whole = finish(*fabric, 1, arrived);
    EXPECT_TRUE(whole || !fabric->failure().empty());
    control->all_gather("");
    control->close();
    return fabric->failure();
  });
  expect_all_ok(outcomes);
  EXPECT_EQ(outcomes[0].said, "");  // net 1.17 behaves that way, and correctly
}

// ---- waiting and failing

TEST_P(EveryProvider, WaitsForTimeWakeAndArrival) {
  expect_all_ok(run_processes(2, [](const World& world) {
    using Clock = std::chrono::steady_clock;
    Joined j = join(world, options_for(GetParam()));
    NetworkFabric& fabric = *j.fabric;
    std::vector<Message> arrived;
    // Connect both ways first, so that only our own actions end a wait.
    send_all(fabric, 1 - world.rank, make_message(0, world.rank, 0), arrived);
    EXPECT_TRUE(finish(fabric, 1, arrived));
    j.control->all_gather("");
    while (fabric.poll(arrived) > 0) {
    }

    const auto blocked = [&](std::chrono::nanoseconds timeout) {  // until the timeout
      const auto start = Clock::now();
      while (Clock::now() < start + timeout) {
        fabric.wait(start + timeout - Clock::now(), 0ns);
        if (fabric.poll(arrived) > 0) break;
      }
      return Clock::now() - start;
    };
    const auto slept = blocked(50ms);
    EXPECT_GE(slept, 50ms);
    EXPECT_LT(slept, 500ms);

    fabric.wake();  // before the wait
    auto start = Clock::now();
    fabric.wait(10s, 0ns);
    EXPECT_LT(Clock::now() - start, 1s);
    for (const auto spin : {0ns, 1'000'000'000ns}) {  // and during it
      std::thread waker([&] {
        std::this_thread::sleep_for(20ms);
        fabric.wake();
      });
      start = Clock::now();
      fabric.wait(10s, spin);
      EXPECT_LT(Clock::now() - start, 900ms);
      waker.join();
    }

    // Another descriptor that the fabric's owner waits for.
    const int other = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    fabric.watch(other);
    for (const auto spin : {0ns, 1'000'000'000ns}) {
      std::thread writer([&] {
        std::this_thread::sleep_for(20ms);
        EXPECT_EQ(eventfd_write(other, 1), 0);
      });
      start = Clock::now();
      fabric.wait(10s, spin);
      EXPECT_LT(Clock::now() - start, 900ms);
      writer.join();
      eventfd_t count = 0;
      EXPECT_EQ(eventfd_read(other, &count), 0);
    }

    j.control->all_gather("");
    arrived.clear();
    if (world.rank == 0) {
      std::this_thread::sleep_for(20ms);
      send_all(fabric, 1, make_message(1000, 0, 1), arrived);
      EXPECT_TRUE(finish(fabric, 0, arrived));
    } else {
      EXPECT_LT(blocked(5s), 2s);
      EXPECT_EQ(arrived.size(), 1u);
    }
    j.leave();
    close(other);
    return "";
  }));
}

TEST_P(EveryProvider, UsesLittleProcessorTimeWhileItWaits) {
  expect_all_ok(run_processes(1, [](const World& world) {
    Joined j = join(world, options_for(GetParam()));
    const auto start = std::chrono::steady_clock::now();
    const std::clock_t before = std::clock();
    std::vector<Message> none;
    while (std::chrono::steady_clock::now() < start + 300ms) {
      j.fabric->wait(100ms, 0ns);
      j.fabric->poll(none);
    }
    EXPECT_LT(static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC, 0.1);  // spinning: 0.3
    j.leave();
    return "";
  }));
}

TEST(Ofi, NamesTheHostThatItCannotReach) {
  const auto outcomes = run_processes(2, [](const World& world) {
    Joined j = join(world, options_for("net"));
    std::vector<Message> arrived;
    send_all(*j.fabric, 1 - world.rank, make_message(100, world.rank, 0), arrived);
    EXPECT_TRUE(finish(*j.fabric, 1, arrived));
    j.control->all_gather("");
    if (world.rank == 1) kill(getpid(), SIGKILL);
    for (std::uint32_t i = 1; i < 1'000'000 && j.fabric->failure().empty(); ++i)
      send_all(*j.fabric, 1, make_message(64 << 10, 0, i), arrived);
    return j.fabric->failure();
  });
  EXPECT_TRUE(outcomes[0].ok) << outcomes[0].said;
  EXPECT_NE(outcomes[0].said.find("to host 1 (fi_sockaddr_in://127.0.0.1:"), std::string::npos)
      << outcomes[0].said;
}

std::string opening_error(const OfiOptions& options) {
  try {
    open_ofi_fabric(options);
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    return e.what();
  }
  return "opened";
}

TEST(Ofi, SaysWhichProvidersThereAreWhenTheOneAskedForIsMissing) {
  const auto outcomes =
      run_processes(1, [](const World&) { return opening_error(options_for("infinibanana")); });
  const std::string& text = outcomes[0].said;
  for (const char* part : {"'infinibanana'", "127.0.0.1", "net", "sockets", "fabric.provider"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(text.find("shm"), std::string::npos) << text;  // it would be refused
}

TEST(Ofi, RefusesAProviderThatCannotWait) {
  const auto outcomes =
      run_processes(1, [](const World&) { return opening_error(options_for("shm")); });
  EXPECT_NE(outcomes[0].said.find("'shm' cannot be used"), std::string::npos) << outcomes[0].said;
}

TEST(Ofi, SaysWhenAnAddressIsNotLocal) {
  const auto outcomes = run_processes(1, [](const World&) {
    std::string all;
    for (const char* provider : {"net", "auto"}) {
      OfiOptions o = options_for(provider);
      o.endpoints[0].address = "192.0.2.77";  // reserved for documentation
      all += opening_error(o) + "\n";
    }
    return all;
  });
  EXPECT_EQ(outcomes[0].said.find("opened"), std::string::npos);
  EXPECT_NE(outcomes[0].said.find("'net' cannot be used on address 192.0.2.77"), std::string::npos)
      << outcomes[0].said;
}

TEST(Ofi, ChoosesNativeDatagramsOverTcpByItself) {
  expect_all_ok(run_processes(1, [](const World&) {
    const auto fabric = open_fabric(FabricKind::ofi, options_for("auto"));
    EXPECT_TRUE(fabric->provider() == "net" || fabric->provider() == "tcp") << fabric->provider();
    EXPECT_EQ(fabric->transport().rfind("tcp-", 0), 0u) << fabric->transport();
    EXPECT_TRUE(fabric->idle());
    return "";
  }));
}

TEST(Ofi, RefusesHostsWithAnotherProvider) {
  const auto outcomes = run_processes(1, [](const World&) {
    const auto fabric = open_ofi_fabric(options_for("net"));
    try {
      fabric->connect(
          flows_to({fabric->address(0), open_ofi_fabric(options_for("sockets"))->address(0)}, 0));
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("connected");
  });
  const std::string& text = outcomes[0].said;
  for (const char* part : {"host 1 uses provider sockets", "this host uses net", "fabric.provider"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(Ofi, ListsProvidersWithoutOpeningThem) {
  expect_all_ok(run_processes(1, [](const World&) {
    const auto providers = list_fabric_providers(FabricKind::ofi);
    const auto has = [&](const std::string& name) {
      return std::any_of(providers.begin(), providers.end(),
                         [&](const FabricProvider& p) { return p.name == name && p.waitable; });
    };
    EXPECT_TRUE(has("net") || has("tcp"));
    EXPECT_TRUE(has("sockets"));
    return "";
  }));
}

// ---- reassembly on its own

class Fragments : public ::testing::Test {
 protected:
  // Delivers a fragment whose payload bytes all have the value `number`.
  Reassembly::Verdict arrive(std::uint32_t source, std::uint32_t number, std::uint32_t index,
                             std::uint64_t message_bytes, std::uint32_t ordinal) {
    Header h = make_message(message_bytes, static_cast<int>(source), ordinal).header;
    h.nonce = kNonce;
    h.offset = pack({source, number, index});
    const std::size_t bytes = fragment_bytes(message_bytes, index);
    const std::vector<std::byte> payload(bytes, static_cast<std::byte>(number));
    return inbox.accept(h, sizeof h + bytes, payload.data(), ready);
  }
  static constexpr auto kTaken = Reassembly::Verdict::taken;
  static constexpr auto kStray = Reassembly::Verdict::stray;
  static constexpr std::uint64_t kThree = 2 * kFragmentBytes + 5;  // bytes in three fragments

  Reassembly inbox{kNonce, 2, true};
  std::vector<Message> ready;
};

TEST_F(Fragments, PutsBackInOrderWhatOvertook) {
  EXPECT_EQ(arrive(1, 3, 0, 10, 1), kTaken);  // a small message overtakes a large one
  EXPECT_EQ(arrive(1, 2, 2, kThree, 0), kTaken);
  EXPECT_EQ(arrive(1, 1, 1, kThree, 0), kTaken);
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(arrive(0, 0, 0, 0, 7), kTaken);  // another source does not wait
  ASSERT_EQ(ready.size(), 1u);
  EXPECT_EQ(arrive(1, 0, 0, kThree, 0), kTaken);
  ASSERT_EQ(ready.size(), 3u);
  EXPECT_EQ(ready[1].header.sequence, 0u);
  EXPECT_EQ(ready[2].header.sequence, 1u);
  EXPECT_EQ(ready[1].payload[0], std::byte{0});
  EXPECT_EQ(ready[1].payload[kFragmentBytes], std::byte{1});
  EXPECT_EQ(ready[1].payload[kThree - 1], std::byte{2});
  EXPECT_EQ(ready[2].payload[9], std::byte{3});
}

TEST_F(Fragments, AreTakenOnce) {
  EXPECT_EQ(arrive(0, 0, 0, 10, 0), kTaken);
  EXPECT_EQ(arrive(0, 0, 0, 10, 0), kStray);
  EXPECT_EQ(arrive(0, 2, 0, 10, 2), kTaken);
  EXPECT_EQ(arrive(0, 2, 0, 10, 2), kStray);
  EXPECT_EQ(arrive(0, 1, 0, 10, 1), kTaken);
  EXPECT_EQ(ready.size(), 3u);
}

TEST_F(Fragments, AreDroppedWhenTheyMakeNoSense) {
  EXPECT_EQ(arrive(2, 0, 0, 10, 0), kStray);                    // no such process
  EXPECT_EQ(arrive(0, kAhead, 0, 10, 0), kStray);               // far ahead
  EXPECT_EQ(arrive(0, kNumbers - 1, 0, 10, 0), kStray);         // already received
  EXPECT_EQ(arrive(0, 0, 1, kThree, 0), kStray);                // its beginning never came
  EXPECT_EQ(arrive(0, 0, 0, kMaxMessageBytes + 1, 0), kStray);  // too large
  Header h = make_message(10, 0, 0).header;
  h.offset = pack({0, 0, 0});
  const std::byte payload[100] = {};
  EXPECT_EQ(inbox.accept(h, sizeof h + 10, payload, ready), kStray);  // nonce
  h.nonce = kNonce;
  EXPECT_EQ(inbox.accept(h, sizeof h + 9, payload, ready), kStray);
  EXPECT_EQ(inbox.accept(h, sizeof h + 11, payload, ready), kStray);
  EXPECT_EQ(inbox.accept(h, 10, payload, ready), kStray);
  h.offset = pack({0, 0, 1});
  EXPECT_EQ(inbox.accept(h, sizeof h, payload, ready), kStray);  // no second fragment
  EXPECT_TRUE(ready.empty());
  EXPECT_EQ(arrive(0, 0, 0, 10, 0), kTaken);  // the rejected ones left no trace
  EXPECT_EQ(ready.size(), 1u);
}

TEST_F(Fragments, OfTwoMessagesDoNotMix) {
  EXPECT_EQ(arrive(0, 0, 0, kThree, 0), kTaken);
  EXPECT_EQ(arrive(0, 1, 1, kThree, 1), kStray);
  EXPECT_EQ(arrive(0, 1, 0, 10, 1), kStray);
  EXPECT_EQ(arrive(0, 1, 1, kThree, 0), kTaken);
  EXPECT_EQ(arrive(0, 2, 2, kThree, 0), kTaken);
  EXPECT_EQ(ready.size(), 1u);
}

TEST_F(Fragments, ForgedAtRandomNeverHarm) {
  std::mt19937_64 random(1);
  const std::byte payload[256] = {};
  for (int i = 0; i < 100'000; ++i) {
    Header h;
    std::uint64_t words[8];
    for (std::uint64_t& w : words) w = random();
    std::memcpy(static_cast<void*>(&h), words, sizeof h);
    if (i % 2 == 0) {  // nearly valid
      h.nonce = kNonce;
      h.bytes = random() % 256;
      h.offset = pack({static_cast<std::uint32_t>(random() % 3),
                       static_cast<std::uint32_t>(random() % 300),
                       static_cast<std::uint32_t>(random() % 3)});
    }
    inbox.accept(h, sizeof h + (i % 3 == 0 ? random() % 256 : h.bytes % 256), payload, ready);
  }
  for (const Message& m : ready) EXPECT_LT(m.header.bytes, 256u);
}

TEST_F(Fragments, AreNumberedAroundTheCorner) {
  Reassembly plain(kNonce, 1, false);
  Header h = make_message(0, 0, 0).header;
  h.nonce = kNonce;
  std::uint64_t completed = 0;
  for (std::uint32_t n = 0; n < kNumbers + 10; ++n) {
    h.offset = pack({0, n, 0});
    plain.accept(h, sizeof h, nullptr, ready);
    completed += ready.size();
    ready.clear();
  }
  EXPECT_EQ(completed, kNumbers + 10);
}

TEST(Envelope, KeepsWhatWasPacked) {
  const Envelope e = unpack(pack({kMaxFlows - 1, kNumbers + 3, (1u << 20) - 1}));
  EXPECT_EQ(e.flow, kMaxFlows - 1);
  EXPECT_EQ(e.number, 3u);
  EXPECT_EQ(e.index, (1u << 20) - 1);
}

}  // namespace
}  // namespace ghostrank
