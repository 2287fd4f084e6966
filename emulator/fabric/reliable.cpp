#include "emulator/fabric/reliable.h"

#include <algorithm>
#include <cstring>

#include "switch/assert.h"

namespace ghostrank {
namespace {

constexpr std::int32_t kLater = 3;  // a packet this far ahead has come: the missing one is lost
constexpr std::int64_t kLeastPatienceNs = 10'000'000, kFirstPatienceNs = 50'000'000;
constexpr int kMostBackoff = 64;

// How far `a` is after `b`; numbers wrap.
std::int32_t distance(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b); }

}  // namespace

void ReliableSender::put(Message&& message) {
  GHOSTRANK_ASSERT(!full());
  bytes_ += message.header.bytes;
  messages_.push_back(std::move(message));
}

// Cuts the next packet of the messages into the window, if there is one.
void ReliableSender::cut() {
  const std::uint64_t index = cut_message_ - first_message_;
  if (window_.size() == kWindow || index >= messages_.size()) return;
  const std::uint64_t all = messages_[index].header.bytes;
  Sent packet{.number = next_++, .message = cut_message_, .at = cut_at_, .first = cut_at_ == 0};
  const std::size_t room = most_in_packet_ - (packet.first ? sizeof(Header) : 0);
  packet.bytes = static_cast<std::size_t>(std::min<std::uint64_t>(room, all - cut_at_));
  cut_at_ += packet.bytes;
  packet.last = cut_at_ == all;
  if (packet.last) {
    ++cut_message_;
    cut_at_ = 0;
  }
  window_.push_back(packet);
}

ReliableSender::Sent* ReliableSender::waiting() {
  for (Sent& packet : window_)
    if (packet.waits) return &packet;
  return nullptr;
}

std::optional<ReliableSender::Packet> ReliableSender::due() {
  Sent* packet = waiting();
  if (!packet) {
    const std::size_t before = window_.size();
    cut();
    if (window_.size() == before) return std::nullopt;
    packet = &window_.back();
  }
  const Message& message = messages_[packet->message - first_message_];
  return Packet{packet->number, packet->first ? &message.header : nullptr,
                message.payload ? message.payload.get() + packet->at : nullptr, packet->bytes,
                packet->times > 0};
}

void ReliableSender::left(std::int64_t now_ns) {
  Sent* packet = waiting();
  GHOSTRANK_ASSERT(packet != nullptr);
  packet->waits = false;
  packet->sent_ns = now_ns;
  sent_again_ += packet->times++ > 0;
}

std::size_t ReliableSender::acknowledge(const Acknowledgement& ack, std::int64_t now_ns) {
  std::optional<std::uint32_t> latest;
  std::size_t news = 0;
  for (Sent& packet : window_) {
    const std::int32_t after = distance(packet.number, ack.awaited);
    const bool come = after < 0 || (after > 0 && after <= 64 && (ack.come >> (after - 1) & 1) != 0);
    if (come && !packet.come && packet.times == 1) {
      const std::int64_t round = now_ns - packet.sent_ns;
      smoothed_ns_ = smoothed_ns_ == 0 ? round : (7 * smoothed_ns_ + round) / 8;
      backoff_ = 1;
    }
    news += come && !packet.come;
    packet.come |= come;
    if (packet.come) packet.waits = false;
    if (packet.come && packet.times > 0) latest = packet.number;
  }
  for (Sent& packet : window_)  // lost, unless it was just sent again
    if (latest && !packet.come && packet.times > 0 && distance(*latest, packet.number) >= kLater &&
        now_ns - packet.sent_ns > smoothed_ns_)
      packet.waits = true;
  while (!window_.empty() && window_.front().come) {
    if (window_.front().last) {
      bytes_ -= messages_.front().header.bytes;
      messages_.pop_front();
      ++first_message_;
    }
    window_.pop_front();
  }
  return news;
}

std::int64_t ReliableSender::patience_ns() const {
  return backoff_ *
         (smoothed_ns_ == 0 ? kFirstPatienceNs : std::max(kLeastPatienceNs, 4 * smoothed_ns_));
}

std::optional<std::int64_t> ReliableSender::deadline_ns() const {
  std::optional<std::int64_t> first;
  for (const Sent& packet : window_)
    if (!packet.come && !packet.waits)
      first = std::min(first.value_or(packet.sent_ns), packet.sent_ns);
  if (first) *first += patience_ns();
  return first;
}

std::size_t ReliableSender::time_out(std::int64_t now_ns) {
  std::size_t late = 0;
  for (Sent& packet : window_) {
    if (packet.come || packet.waits || now_ns - packet.sent_ns < patience_ns()) continue;
    packet.waits = true;
    ++late;
  }
  if (late > 0) backoff_ = std::min(2 * backoff_, kMostBackoff);
  return late;
}

bool ReliableReceiver::take(std::uint32_t number, bool first, std::span<const std::byte> bytes,
                            std::vector<Message>& arrived) {
  const std::int32_t after = distance(number, awaited_);
  if (after < 0) return true;  // it has come before
  if (after > static_cast<std::int32_t>(ReliableSender::kWindow)) return false;
  if (after > 0) {
    taken_ += early_.try_emplace(number, Early{first, {bytes.begin(), bytes.end()}}).second;
    return true;
  }
  if (!append(first, bytes, arrived)) return false;
  ++taken_;
  ++awaited_;
  for (auto next = early_.find(awaited_); next != early_.end(); next = early_.find(++awaited_)) {
    const bool whole = append(next->second.first, next->second.bytes, arrived);
    early_.erase(next);
    if (!whole) return false;
  }
  return true;
}

bool ReliableReceiver::append(bool first, std::span<const std::byte> bytes,
                              std::vector<Message>& arrived) {
  if (first) {
    if (open_ || bytes.size() < sizeof(Header)) return false;
    open_.emplace();
    std::memcpy(static_cast<void*>(&open_->header), bytes.data(), sizeof(Header));
    bytes = bytes.subspan(sizeof(Header));
    got_ = 0;
    const std::uint64_t kept =
        keep_payload_ ? open_->header.bytes
        : open_->header.kind == MessageKind::note
            ? std::min<std::uint64_t>(open_->header.number, open_->header.bytes)
            : 0;
    if (kept > 0) open_->payload.reset(new std::byte[kept]);
  } else if (!open_) {
    return false;
  }
  if (bytes.size() > open_->header.bytes - got_) return false;
  const std::uint64_t kept = !open_->payload ? 0
                             : keep_payload_ ? open_->header.bytes
                                             : open_->header.number;
  if (got_ < kept)
    std::memcpy(open_->payload.get() + got_, bytes.data(),
                std::min<std::size_t>(bytes.size(), static_cast<std::size_t>(kept - got_)));
  got_ += bytes.size();
  if (got_ < open_->header.bytes) return true;
  arrived.push_back(std::move(*open_));
  open_.reset();
  return true;
}

Acknowledgement ReliableReceiver::acknowledgement() const {
  Acknowledgement ack{awaited_, 0};
  for (const auto& [number, early] : early_)
    ack.come |= std::uint64_t{1} << (distance(number, awaited_) - 1);
  return ack;
}

}  // namespace ghostrank
