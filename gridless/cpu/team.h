// A fixed team of threads that run one function together, again and again.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "gridless/base/error.h"

namespace gridless::cpu {

struct TeamOptions {
  int workers = 1;  // at least 1; the caller of run() is worker 0, the others are threads
  // Binds worker i to the i-th processor that the process may use (again from the first when there
  // are fewer). The caller's own binding is left as it is. Helps when nothing else runs; on a
  // shared machine it keeps a worker waiting for a busy processor while others idle.
  bool pin = false;
};

// One thread at a time calls run(); the members are not thread-safe beyond that.
class Team {
 public:
  // A machine error when the system refuses a thread.
  static Result<std::unique_ptr<Team>> start(const TeamOptions& options);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  // Runs work(0) here and work(1) .. work(workers - 1) on the other threads, and returns when all
  // have returned. Between runs the threads spin a few microseconds, then sleep. `work` must not
  // throw and must not call run().
  void run(const std::function<void(int worker)>& work);

  int workers() const;

 private:
  struct State;
  explicit Team(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gridless::cpu
