#include "tests/nccl_trace/trace.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <stdexcept>

#include <nlohmann/json.hpp>

namespace ghostrank::nccl_trace {
namespace {

constexpr char kEnd[] = "end";

struct Connection {
  Peer peer;
  Messages sent;  // in the open launch
};

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  void line(const std::string& text) {
    ++number_;
    std::istringstream in(text);
    std::string verb, of;
    in >> verb;
    if (verb == "mark") return mark(text.substr(text.find(' ') + 1));
    if (verb == "rank") {
      in >> trace_.rank >> of >> trace_.size;
    } else if (verb == "connect") {
      int connection = 0;
      Peer peer;
      in >> connection >> peer.target >> peer.nic;
      connections_[connection].peer = peer;
    } else if (verb == "send") {
      int connection = 0;
      std::uint64_t bytes = 0;
      in >> connection >> bytes;
      const auto at = connections_.find(connection);
      if (at == connections_.end()) refuse("it was never connected");
      if (open_) at->second.sent.push_back(bytes);
    } else {
      refuse("it is no line of a trace");
    }
    if (!in) refuse("a number is missing");
  }

  RankTrace take() {
    if (open_) trace_.broken_off = open_->mark;
    return std::move(trace_);
  }

 private:
  void mark(const std::string& text) {
    if (text != kEnd) {
      if (open_) refuse("a launch begins inside another");
      open_ = RankLaunch{text, {}};
      return;
    }
    if (!open_) refuse("a launch ends that has not begun");
    for (auto& [number, connection] : connections_) {
      if (connection.sent.empty()) continue;
      open_->sent.emplace(connection.peer, std::move(connection.sent));
      connection.sent.clear();
    }
    trace_.launches.push_back(std::move(*open_));
    open_.reset();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(number_) + ": " + what);
  }

  std::string name_;
  int number_ = 0;
  RankTrace trace_;
  std::map<int, Connection> connections_;
  std::optional<RankLaunch> open_;
};

Func func_named(const std::string& name) {
  for (int f = 0; f < kFuncs; ++f)
    if (name_of(static_cast<Func>(f)) == name) return static_cast<Func>(f);
  throw std::runtime_error("there is no function '" + name + "'");
}

Collective collective_of(const nlohmann::json& call, int size) {
  Collective c{func_named(call.at("func")), size, call.value("count", std::uint64_t{0}),
               call.value("element_bytes", 4u), call.value("root", 0)};
  c.target = call.value("target", c.target);
  if (call.contains("counts"))
    c.counts = std::make_shared<const std::vector<std::uint64_t>>(
        call["counts"].get<std::vector<std::uint64_t>>());
  return c;
}

}  // namespace

RankTrace read_trace(std::istream& in, const std::string& name) {
  Reader reader(name);
  for (std::string line; std::getline(in, line);)
    if (!in.eof()) reader.line(line);  // a line without an end broke off
  return reader.take();
}

Launch parse_launch(const std::string& mark, int size) try {
  const nlohmann::json json = nlohmann::json::parse(mark);
  Launch launch;
  launch.library = json.at("library");
  launch.algorithm = json.at("algorithm");
  for (const nlohmann::json& call : json.at("calls"))
    launch.calls.push_back(collective_of(call, size));
  if (launch.calls.empty()) throw std::runtime_error("it has no calls");
  Communicator& communicator = launch.communicator;
  communicator.channels = json.value("channels", 0);
  communicator.environment = json.value("environment", Environment{});
  if (json.contains("protocol")) {
    communicator.protocol = protocol_named(json["protocol"].get<std::string>());
    if (!communicator.protocol) throw std::runtime_error("there is no such protocol");
  }
  for (GroupRank r = 0; r < size; ++r) communicator.node_of.push_back(r);
  return launch;
} catch (const std::exception& error) {
  throw std::runtime_error("the mark " + mark + " describes no launch: " + error.what());
}

}  // namespace ghostrank::nccl_trace
