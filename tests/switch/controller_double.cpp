// A small controller of the form that SwitchML publishes, over gRPC: it waits until all workers of
// a session have entered, lets a running switch of ghostrank's admit them, worker r on port r, and
// answers them all. Prints a line for each request.
//
//   controller_double HOST:PORT CONTROL_SOCKET MAC IP      MAC and IP: what it says of the switch
//
// Ends when its input does.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <iostream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "switch/controller/byte_buffers.h"

namespace {

using namespace ghostrank::switchml;

std::string mac_text(std::uint64_t mac) {
  char text[18];
  std::snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x",
                static_cast<unsigned>(mac >> 40 & 255), static_cast<unsigned>(mac >> 32 & 255),
                static_cast<unsigned>(mac >> 24 & 255), static_cast<unsigned>(mac >> 16 & 255),
                static_cast<unsigned>(mac >> 8 & 255), static_cast<unsigned>(mac & 255));
  return text;
}

std::uint64_t mac_number(std::string text) {
  std::erase(text, ':');
  return std::stoull(text, nullptr, 16);
}

class Controller;

// One call of a worker.
class Entry final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Entry(Controller& controller) : controller_(controller) { StartRead(&request_); }
  void OnReadDone(bool ok) override;
  void OnDone() override { delete this; }
  void answer(const Fields& said) {
    answer_ = buffer_of(said);
    StartWriteAndFinish(&answer_, {}, grpc::Status::OK);
  }

  Fields fields;

 private:
  Controller& controller_;
  grpc::ByteBuffer request_, answer_;
};

class Controller final : public grpc::CallbackGenericService {
 public:
  Controller(std::string socket, std::string mac, std::uint32_t ip)
      : socket_(std::move(socket)), mac_(mac_number(std::move(mac))), ip_(ip) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override {
    if (call->method() == kUdpSession) return new Entry(*this);
    return grpc::CallbackGenericService::CreateReactor(call);  // says that there is no such method
  }

  void enter(Entry* entry) {
    const std::lock_guard lock(mutex_);
    Fields& f = entry->fields;
    std::printf("rank %llu of %llu, %s, %s, size %llu\n", static_cast<unsigned long long>(f[2]),
                static_cast<unsigned long long>(f[3]), mac_text(f[4]).c_str(),
                text_of_ip(static_cast<std::uint32_t>(f[5])).c_str(),
                static_cast<unsigned long long>(f[7]));
    std::fflush(stdout);
    entries_[f[2]] = entry;
    if (entries_.size() < f[3]) return;
    if (!admit()) std::printf("the switch does not admit them\n");
    for (const auto& [rank, each] : entries_)
      each->answer({{1, each->fields[1]}, {2, mac_}, {3, ip_}});
    entries_.clear();
  }

 private:
  bool admit() {
    const std::string file = socket_ + ".job";
    std::ofstream out(file);
    out << "name: session\nelements: " << (entries_.begin()->second->fields[7] == 3 ? 256 : 64)
        << "\nslots: 512\nguarded: true\nworkers:\n";
    for (const auto& [rank, entry] : entries_)
      out << "  - {port: " << rank << ", mac: " << mac_text(entry->fields[4])
          << ", ip: " << text_of_ip(static_cast<std::uint32_t>(entry->fields[5])) << "}\n";
    out.close();
    const std::string command = GHOSTRANK_BINARY " switch admit --socket " + socket_ + " " + file;
    return std::system(command.c_str()) == 0;
  }

  std::mutex mutex_;
  std::map<std::uint64_t, Entry*> entries_;  // by rank
  const std::string socket_;
  const std::uint64_t mac_;
  const std::uint32_t ip_;
};

void Entry::OnReadDone(bool ok) {
  const auto read = ok ? read_message(text_of(request_)) : std::nullopt;
  if (!read) return Finish({grpc::StatusCode::INVALID_ARGUMENT, "of another form"});
  fields = *read;
  controller_.enter(this);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (std::sscanf(argv[4], "%u.%u.%u.%u", &a, &b, &c, &d) != 4) return 2;
  Controller controller(argv[2], argv[3], a << 24 | b << 16 | c << 8 | d);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&controller);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server) return 3;
  std::string line;
  while (std::getline(std::cin, line)) {
  }
  server->Shutdown(std::chrono::system_clock::now());
}
