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
  GroupRank target = 0;
  Messages sent;  // in the open call
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
      GroupRank target = 0;
      in >> connection >> target;
      connections_[connection].target = target;
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
    if (open_) refuse("the last call has no end: the trace was cut short");
    return std::move(trace_);
  }

 private:
  void mark(const std::string& text) {
    if (text != kEnd) {
      if (open_) refuse("a call begins inside another");
      open_ = RankCall{text, {}};
      return;
    }
    if (!open_) refuse("a call ends that has not begun");
    for (auto& [number, connection] : connections_) {
      if (connection.sent.empty()) continue;
      open_->sent.emplace(connection.target, std::move(connection.sent));
      connection.sent.clear();
    }
    trace_.calls.push_back(std::move(*open_));
    open_.reset();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw std::runtime_error(name_ + ":" + std::to_string(number_) + ": " + what);
  }

  std::string name_;
  int number_ = 0;
  RankTrace trace_;
  std::map<int, Connection> connections_;
  std::optional<RankCall> open_;
};

Func func_named(const std::string& name) {
  for (int f = 0; f < kFuncs; ++f)
    if (name_of(static_cast<Func>(f)) == name) return static_cast<Func>(f);
  throw std::runtime_error("a mark names the function '" + name + "', which does not exist");
}

}  // namespace

RankTrace read_trace(std::istream& in, const std::string& name) {
  Reader reader(name);
  for (std::string line; std::getline(in, line);) reader.line(line);
  return reader.take();
}

Call parse_call(const std::string& mark, int size) {
  const nlohmann::json json = nlohmann::json::parse(mark);
  Call call;
  call.library = json.at("library");
  call.algorithm = json.at("algorithm");
  call.collective = {func_named(json.at("func")), size, json.at("count"),
                     json.value("element_bytes", 4u), json.value("root", 0)};
  call.communicator.channels = json.at("channels");
  call.communicator.protocol = protocol_named(json.at("protocol").get<std::string>());
  if (!call.communicator.protocol)
    throw std::runtime_error("a mark names a protocol that does not exist: " + mark);
  for (GroupRank r = 0; r < size; ++r) call.communicator.node_of.push_back(r);
  return call;
}

}  // namespace ghostrank::nccl_trace
