// The user or the machine is wrong: thrown during set-up with what, where and what to do; caught
// once, in main, which prints "ghostrank: " and the text and exits with `exit_code`.
#pragma once

#include <stdexcept>
#include <string>

namespace ghostrank {

enum class ErrorKind { usage = 2, environment = 3 };

class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& text, ErrorKind kind = ErrorKind::usage)
      : std::runtime_error(text), kind_(kind) {}
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  ErrorKind kind_;
};

}  // namespace ghostrank
