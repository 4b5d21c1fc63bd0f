// The parent side: one worker process, spoken to with a time limit. Movable; the destructor ends
// the process. One thread.
#pragma once

#include <chrono>
#include <string>
#include <variant>
#include <vector>

#include "gridless/base/error.h"
#include "gridless/tpu/worker_protocol.h"

namespace gridless::tpu {

class WorkerProcess {
 public:
  // Starts `command` (argv; the first word is a path) with a socket as its standard input.
  static Result<WorkerProcess> start(const std::vector<std::string>& command);
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&&) = delete;

  // The process did not answer: it ended, or it was still silent at the time limit and was killed.
  struct Death {
    bool timed_out = false;
    int status = 0;                       // as waitpid gives it; unused after a timeout
    std::vector<std::string> last_lines;  // of its stderr during this exchange, at most 12
    // "was killed by signal SIGABRT", "ended with exit status 2", "did not answer within 120 s".
    std::string what;
  };

  // Sends a frame and waits for the answer. After a Death the object is good for nothing else.
  std::variant<Frame, Death> exchange(std::string frame, std::chrono::milliseconds limit);

 private:
  WorkerProcess(int pid, int socket, int log) : pid_(pid), socket_(socket), log_(log) {}
  Death bury(bool timed_out, std::chrono::milliseconds limit);
  void drain_log();

  int pid_ = -1;
  int socket_ = -1;
  int log_ = -1;  // the worker's stderr
  std::string inbox_;
  std::string log_text_;
};

}  // namespace gridless::tpu
