// ghostrank-controller: enters the workers of a job into a session of SwitchML's published
// controller, over gRPC. A program of its own, so that the command does not carry gRPC's libraries.
//
//   ghostrank-controller HOST:PORT SESSION ELEMENTS MAC,IP MAC,IP ...     workers by rank
//
// It calls for all workers at once, because a controller may answer none of them before it knows
// all, and prints the switch's "MAC IP". With exit status 3 it prints a reason instead: no
// controller answers within kPatience, it refuses, or its answers differ.
#include <arpa/inet.h>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "switch/controller/byte_buffers.h"

namespace {

using namespace ghostrank::switchml;

constexpr std::chrono::seconds kPatience{10};

struct Call {
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> reader;
};

// "02:00:00:00:00:01,10.0.0.1"
void read_worker(const std::string& text, SessionRequest& request) {
  const std::size_t comma = text.find(',');
  unsigned mac[6];
  in_addr ip{};
  if (comma == std::string::npos ||
      std::sscanf(text.c_str(), "%x:%x:%x:%x:%x:%x,", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4],
                  &mac[5]) != 6 ||
      inet_pton(AF_INET, text.c_str() + comma + 1, &ip) != 1)
    throw std::runtime_error("'" + text + "' is no MAC,IP");
  for (std::size_t i = 0; i < request.mac.size(); ++i)
    request.mac[i] = static_cast<std::uint8_t>(mac[i]);
  request.ip = ntohl(ip.s_addr);
}

SessionAnswer read_answer(const Call& call, std::size_t rank, std::uint64_t session) {
  const std::string who = "the controller's answer to worker " + std::to_string(rank);
  if (!call.status.ok())
    throw std::runtime_error(
        call.status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED
            ? "the controller has not answered worker " + std::to_string(rank) + " within " +
                  std::to_string(kPatience.count()) + " s"
            : who + " is an error: " + call.status.error_message() + " (gRPC status " +
                  std::to_string(call.status.error_code()) + ")");
  const std::optional<Fields> fields = read_message(text_of(call.answer));
  if (!fields) throw std::runtime_error(who + " is of another form");
  const SessionAnswer answer = answer_of(*fields);
  if (answer.session != session) throw std::runtime_error(who + " is of another session");
  return answer;
}

SessionAnswer enter(const std::string& controller, const std::vector<SessionRequest>& requests) {
  grpc::GenericStub stub(grpc::CreateChannel(controller, grpc::InsecureChannelCredentials()));
  grpc::CompletionQueue queue;
  std::vector<Call> calls(requests.size());
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const grpc::ByteBuffer request = buffer_of(fields_of(requests[i]));
    calls[i].context.set_deadline(std::chrono::system_clock::now() + kPatience);
    calls[i].reader = stub.PrepareUnaryCall(&calls[i].context, kUdpSession, request, &queue);
    calls[i].reader->StartCall();
    calls[i].reader->Finish(&calls[i].answer, &calls[i].status, &calls[i]);
  }
  void* tag = nullptr;
  bool ok = false;
  for (std::size_t i = 0; i < calls.size(); ++i) queue.Next(&tag, &ok);
  std::optional<SessionAnswer> first;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const SessionAnswer answer = read_answer(calls[i], i, requests[i].session);
    if (first && (answer.mac != first->mac || answer.ip != first->ip))
      throw std::runtime_error("the controller names different switches to workers 0 and " +
                               std::to_string(i));
    first = answer;
  }
  return *first;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc < 5)
      throw std::runtime_error("usage: ghostrank-controller HOST:PORT SESSION ELEMENTS MAC,IP ...");
    std::vector<SessionRequest> requests;
    for (int i = 4; i < argc; ++i) {
      SessionRequest& request = requests.emplace_back();
      request.session = std::strtoull(argv[2], nullptr, 10);
      request.rank = static_cast<std::uint32_t>(i - 4);
      request.workers = static_cast<std::uint32_t>(argc - 4);
      request.elements = std::atoi(argv[3]);
      read_worker(argv[i], request);
    }
    const SessionAnswer answer = enter(argv[1], requests);
    const Mac& m = answer.mac;
    std::printf("%02x:%02x:%02x:%02x:%02x:%02x %s\n", m[0], m[1], m[2], m[3], m[4], m[5],
                text_of_ip(answer.ip).c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
