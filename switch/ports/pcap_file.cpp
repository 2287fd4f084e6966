#include "switch/ports/pcap_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ghostrank {
namespace {

constexpr std::uint32_t kMicroseconds = 0xa1b2c3d4, kNanoseconds = 0xa1b23c4d;
constexpr std::uint32_t kEthernet = 1;
constexpr std::size_t kFileHeader = 24, kRecordHeader = 16;
constexpr std::size_t kBuffer = 1 << 20;
// The writer's files say that no frame is longer than kMaxFrame. A loopback device and large
// segments of a NIC have longer ones; kMaxCaptured is tcpdump's bound.
constexpr std::uint32_t kMaxFrame = 1 << 16, kMaxCaptured = 1 << 18;
constexpr std::size_t kMapAhead = 4 << 20, kPage = 4096;
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22  // Linux 5.14
#endif

std::uint32_t reversed(std::uint32_t v) { return __builtin_bswap32(v); }

[[noreturn]] void fail_with_errno(const std::string& path, const char* what) {
  throw std::runtime_error(path + ": " + what + ": " + std::strerror(errno));
}

}  // namespace

PcapReader::PcapReader(const std::string& path) : path_(path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  if (!file.is_open() || fstat(file.get(), &facts) != 0) fail_with_errno(path, "cannot be opened");
  size_ = facts.st_size;
  if (size_ >= kFileHeader) {
    void* map = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.get(), 0);
    if (map != MAP_FAILED) {
      data_ = {static_cast<const std::byte*>(map), Unmap{size_}};
      madvise(map, size_, MADV_SEQUENTIAL);
    }
  }
  if (S_ISDIR(facts.st_mode)) fail("is a folder, not a pcap file");
  if (data_ == nullptr) fail("is no pcap file: it is shorter than a header");
  const std::uint32_t magic = field(0);
  swapped_ = magic == reversed(kMicroseconds) || magic == reversed(kNanoseconds);
  const std::uint32_t kind = swapped_ ? reversed(magic) : magic;
  if (kind != kMicroseconds && kind != kNanoseconds)
    fail("is no classic pcap file; convert others with: editcap -F nsecpcap IN OUT");
  unit_ns_ = kind == kNanoseconds ? 1 : 1000;
  if ((field(20) & 0xffff) != kEthernet)
    fail("does not hold Ethernet frames; capture on one device (tcpdump -i DEVICE), not on any");
  at_ = kFileHeader;
}

void PcapReader::Unmap::operator()(const std::byte* data) const {
  munmap(const_cast<std::byte*>(data), bytes);
}

void PcapReader::fail(const std::string& what) const {
  throw std::runtime_error(path_ + ": " + what +
                           (at_ > 0 ? " at byte " + std::to_string(at_) : ""));
}

// The file was cut off; what is before the packet is whole.
void PcapReader::fail_cut(const std::string& what) const {
  throw std::runtime_error(path_ + ": " + what + " at byte " + std::to_string(at_) +
                           "; keep what is whole, with: head -c " + std::to_string(at_) +
                           " IN > OUT");
}

std::uint32_t PcapReader::field(std::size_t at) const {
  std::uint32_t v;
  std::memcpy(&v, data_.get() + at, sizeof v);
  return swapped_ ? reversed(v) : v;
}

// Prefetches the next frame, which should be cached when it is asked for, after frames of other
// files. `bytes` is the length of the last frame, as a guess for the next.
void PcapReader::read_ahead(std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  bytes = std::min(bytes, size_ - at_);
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(data_.get() + at_ + i);
  if (at_ < mapped_ || mapped_ == size_) return;
  // Map many pages at once instead of a fault for every few. If the kernel cannot, reading faults.
  mapped_ = std::min(size_, mapped_ + kMapAhead);
  const std::size_t from = at_ & ~(kPage - 1);
  madvise(const_cast<std::byte*>(data_.get()) + from, mapped_ - from, MADV_POPULATE_READ);
}

std::optional<PcapFrame> PcapReader::next() {
  PcapFrame frame;
  return next(frame) ? std::optional(frame) : std::nullopt;
}

bool PcapReader::next(PcapFrame& frame) {
  if (at_ == size_) return false;
  if (size_ - at_ < kRecordHeader) fail_cut("ends within a packet's header");
  const std::uint32_t captured = field(at_ + 8);
  if (captured > kMaxCaptured) fail("has a packet of " + std::to_string(captured) + " bytes");
  if (size_ - at_ - kRecordHeader < captured) fail_cut("ends within a packet");
  frame.time_ns = field(at_) * std::uint64_t{1'000'000'000} + field(at_ + 4) * unit_ns_;
  frame.bytes = {data_.get() + at_ + kRecordHeader, captured};
  frame.length = field(at_ + 12);
  at_ += kRecordHeader + captured;
  read_ahead(kRecordHeader + captured);
  return true;
}

PcapWriter::PcapWriter(const std::string& path)
    : path_(path),
      fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)),
      buffer_(kBuffer) {
  if (!fd_.is_open()) fail_with_errno(path, "cannot be written");
  const std::uint32_t header[6] = {kNanoseconds, 2 | 4 << 16, 0, 0, kMaxFrame, kEthernet};
  std::memcpy(buffer_.data(), header, sizeof header);
  used_ = sizeof header;
}

PcapWriter::~PcapWriter() {
  if (!fd_.is_open()) return;
  try {
    finish();
  } catch (const std::runtime_error&) {
  }
}

std::byte* PcapWriter::frame(std::uint64_t time_ns, std::size_t bytes) {
  if (used_ + kRecordHeader + bytes > buffer_.size()) flush();
  const auto size = static_cast<std::uint32_t>(bytes);
  const std::uint32_t header[4] = {static_cast<std::uint32_t>(time_ns / 1'000'000'000),
                                   static_cast<std::uint32_t>(time_ns % 1'000'000'000), size, size};
  std::memcpy(buffer_.data() + used_, header, sizeof header);
  std::byte* room = buffer_.data() + used_ + kRecordHeader;
  used_ += kRecordHeader + bytes;
  ++frames_;
  return room;
}

void PcapWriter::flush() {
  for (std::size_t done = 0; done < used_;) {
    const ssize_t n = write(fd_.get(), buffer_.data() + done, used_ - done);
    if (n < 0 && errno != EINTR) fail_with_errno(path_, "cannot be written");
    if (n > 0) done += n;
  }
  used_ = 0;
}

void PcapWriter::finish() {
  flush();
  if (!fd_.close_written()) fail_with_errno(path_, "cannot be closed");
}

}  // namespace ghostrank
