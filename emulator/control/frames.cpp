#include "emulator/control/frames.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace ghostrank {
namespace {

constexpr std::string_view kMagic = "ghostrank-control";
constexpr std::size_t kReadBytes = 64 << 10;

// The type follows the length; see encode().
FrameType type_of(std::string_view frame) {
  return static_cast<FrameType>(frame[sizeof(std::uint32_t)]);
}

}  // namespace

std::string encode(FrameType type, std::string_view payload) {
  const auto length = static_cast<std::uint32_t>(payload.size() + 1);
  std::string bytes;
  bytes.reserve(sizeof length + length);
  bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
  bytes += static_cast<char>(type);
  bytes += payload;
  return bytes;
}

std::string encode(const Hello& h) {
  BlobWriter w;
  w.put(kMagic).put(h.protocol).put(h.build).put(h.job_id).put(h.token);
  w.put(h.hostname).put(h.boot_id).put(h.rank).put(h.size);
  return encode(FrameType::hello, w.bytes());
}

// Another version of the protocol may have other fields after its number; the number alone is
// enough to refuse it.
std::optional<Hello> decode_hello(const Frame& frame) {
  BlobReader r(frame.payload);
  if (frame.type != FrameType::hello || r.get<std::string>() != kMagic) return std::nullopt;
  Hello h;
  r.get(h.protocol);
  if (!r.bad() && h.protocol != kControlProtocol) return h;
  r.get(h.build), r.get(h.job_id), r.get(h.token);
  r.get(h.hostname), r.get(h.boot_id), r.get(h.rank), r.get(h.size);
  if (!r.complete()) return std::nullopt;
  return h;
}

std::string encode(const Welcome& welcome) {
  BlobWriter w;
  w.put(kMagic).put(welcome.hostname).put(welcome.boot_id);
  return encode(FrameType::welcome, w.bytes());
}

std::optional<Welcome> decode_welcome(const Frame& frame) {
  BlobReader r(frame.payload);
  if (frame.type != FrameType::welcome || r.get<std::string>() != kMagic) return std::nullopt;
  Welcome w;
  r.get(w.hostname), r.get(w.boot_id);
  if (!r.complete()) return std::nullopt;
  return w;
}

bool FrameBuffer::receive(int fd) {
  std::array<char, kReadBytes> arrived;  // not initialised: a heartbeat has five bytes
  const std::size_t most = std::min(arrived.size(), limit_ + sizeof(std::uint32_t));
  const ssize_t count = recv(fd, arrived.data(), most, MSG_DONTWAIT);
  if (count > 0) add(std::string_view(arrived.data(), static_cast<std::size_t>(count)));
  return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
}

void FrameBuffer::add(std::string_view arrived) {
  if (taken_ > 0 && taken_ >= bytes_.size() / 2) {
    bytes_.erase(0, taken_);
    taken_ = 0;
  }
  bytes_ += arrived;
}

std::optional<Frame> FrameBuffer::next() {
  const std::string_view rest = std::string_view(bytes_).substr(taken_);
  std::uint32_t length = 0;
  if (broken_ || rest.size() < sizeof length) return std::nullopt;
  std::memcpy(&length, rest.data(), sizeof length);
  broken_ = length == 0 || length > limit_;
  if (broken_ || rest.size() < sizeof length + length) return std::nullopt;
  Frame frame;
  frame.type = static_cast<FrameType>(rest[sizeof length]);
  frame.payload = rest.substr(sizeof length + 1, length - 1);
  taken_ += sizeof length + length;
  return frame;
}

bool SendQueue::counts(FrameType type) {
  return type != FrameType::gathered && type != FrameType::stop && type != FrameType::goodbye;
}

bool SendQueue::push(Bytes frame) {
  const FrameType type = type_of(*frame);
  const std::size_t bytes = counts(type) ? frame->size() + kWaitingBytes : 0;
  if (bytes > kMaxUnsentBytes - waiting_bytes_) return false;
  waiting_bytes_ += bytes;
  gathered_ += type == FrameType::gathered;
  frames_.push_back(std::move(frame));
  return true;
}

std::string_view SendQueue::front() const {
  return std::string_view(*frames_.front()).substr(offset_);
}

void SendQueue::sent(std::size_t bytes) {
  const std::string& first = *frames_.front();
  offset_ += bytes;
  if (offset_ < first.size()) return;
  const FrameType type = type_of(first);
  if (counts(type)) waiting_bytes_ -= first.size() + kWaitingBytes;
  gathered_ -= type == FrameType::gathered;
  frames_.pop_front();
  offset_ = 0;
}

void SendQueue::clear() {  // allocates nothing: it is called when memory has run out
  frames_.clear();
  offset_ = gathered_ = waiting_bytes_ = 0;
}

void ClockEstimate::add(std::int64_t sent, std::int64_t answered, std::int64_t received) {
  const std::int64_t trip = received - sent;
  if (rounds_++ > 0 && trip >= best_) return;
  best_ = trip;
  offset_ = sent + trip / 2 - answered;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  // The time depends on the length of the offered token, not on where it differs.
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char other = b.empty() ? '\0' : b[i % b.size()];
    difference |= static_cast<unsigned char>(a[i] ^ other);
  }
  return difference == 0;
}

std::string this_hostname() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string this_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace ghostrank
