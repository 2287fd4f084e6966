// A fabric that takes everything, brings nothing and never fails, for a test to change.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "emulator/fabric/fabric.h"

namespace ghostrank::testing {

class FabricDouble : public Fabric {
 public:
  bool try_send(int, Message&) override { return true; }
  int poll(std::vector<Message>&) override { return 0; }
  void wait(std::chrono::nanoseconds timeout, std::chrono::nanoseconds) override {
    std::this_thread::sleep_for(timeout);
  }
  void wake() override {}
  bool idle() const override { return true; }
  const std::string& failure() const override { return failure_; }
  FabricStats stats() const override { return {}; }

 private:
  std::string failure_;
};

}  // namespace ghostrank::testing
