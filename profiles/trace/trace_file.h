// The bytes of a trace, gzip or not. In profiles/ only trace_file.cpp sees zlib.
//
// Input is not trusted: a file that ends too early, or that unpacks to more than kMaxUnpackedBytes,
// is refused. Threading: one thread.
#pragma once

#include <cstddef>
#include <string>

namespace ghostrank {

inline constexpr std::size_t kMaxUnpackedBytes = std::size_t{8} << 30;

// Reads a file piece by piece.
class TraceFile {
 public:
  explicit TraceFile(const std::string& path);  // throws Error(usage)
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  static constexpr std::size_t kLeast = 16;  // the first read needs room for so many bytes

  // Reads up to `size` bytes, without a byte-order mark at the beginning; 0: the end. Throws
  // Error(usage) with the byte.
  std::size_t read(char* to, std::size_t size);

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  void* file_ = nullptr;
  std::size_t taken_ = 0;
};

// The whole file, unpacked. Throws Error(usage).
std::string read_trace_file(const std::string& path);

// The first bytes, unpacked, at most `size`. Throws Error(usage).
std::string trace_head(const std::string& path, std::size_t size);

}  // namespace ghostrank
