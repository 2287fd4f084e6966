// Classic pcap files of Ethernet frames: mapped for reading, written through a large buffer. We do
// not use libpcap, because it costs several times as much as handling the packet in the switch, so
// that a measurement of the switch would measure the file.
//
// Errors are std::runtime_error with the file's name, the offset in bytes and what is wrong.
// Threading: one owner per object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "switch/ports/fd.h"

namespace ghostrank {

struct PcapFrame {
  std::uint64_t time_ns = 0;
  std::span<const std::byte> bytes;  // as captured; inside the mapping
  std::uint32_t length = 0;          // on the wire; a capture of headers keeps less
};

class PcapReader {
 public:
  explicit PcapReader(const std::string& path);

  // The next frame; empty (false) at the end. Throws if the file ends within a frame.
  std::optional<PcapFrame> next();
  bool next(PcapFrame& frame);

 private:
  std::uint32_t field(std::size_t at) const;
  void read_ahead(std::size_t bytes);
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail_cut(const std::string& what) const;

  // Owns the mapping, because a constructor that throws has no destructor.
  struct Unmap {
    std::size_t bytes;
    void operator()(const std::byte* data) const;
  };

  std::string path_;
  std::unique_ptr<const std::byte[], Unmap> data_;
  std::size_t size_ = 0, at_ = 0, mapped_ = 0;
  bool swapped_ = false;
  std::uint64_t unit_ns_ = 1000;
};

// Writes time stamps in nanoseconds.
class PcapWriter {
 public:
  explicit PcapWriter(const std::string& path);
  ~PcapWriter();  // writes the buffer but loses errors, so call finish() before
  PcapWriter(const PcapWriter&) = delete;
  PcapWriter& operator=(const PcapWriter&) = delete;

  // Room for a frame of `bytes`; fill it before the next call.
  std::byte* frame(std::uint64_t time_ns, std::size_t bytes);
  void finish();
  std::uint64_t frames() const { return frames_; }

 private:
  void flush();

  std::string path_;
  Fd fd_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t frames_ = 0;
};

}  // namespace ghostrank
