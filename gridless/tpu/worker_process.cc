#include "gridless/tpu/worker_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

extern char** environ;

namespace gridless::tpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxLog = 1 << 16;
constexpr size_t kMaxLines = 12;

void close_fd(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  return name ? std::string("SIG") + name : fmt::format("signal {}", number);
}

// The last lines with anything in them.
std::vector<std::string> last_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < kMaxLines) {
    const size_t newline = text.rfind('\n');
    const std::string_view line =
        newline == std::string_view::npos ? text : text.substr(newline + 1);
    if (!line.empty()) lines.insert(lines.begin(), std::string(line.substr(0, 400)));
    text = newline == std::string_view::npos ? std::string_view() : text.substr(0, newline);
  }
  return lines;
}

}  // namespace

Result<WorkerProcess> WorkerProcess::start(const std::vector<std::string>& command) {
  int sockets[2], log[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return machine_error("cannot make a socket for the compile worker: {}", strerror(errno));
  }
  if (pipe2(log, O_CLOEXEC) != 0) {
    const int why = errno;
    close(sockets[0]), close(sockets[1]);
    return machine_error("cannot make a pipe for the compile worker: {}", strerror(why));
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log[1], STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int failed = posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(sockets[1]), close(log[1]);
  if (failed != 0) {
    close(sockets[0]), close(log[0]);
    return machine_error("cannot start the compile worker {}: {}", command[0], strerror(failed));
  }
  fcntl(sockets[0], F_SETFL, O_NONBLOCK);
  fcntl(log[0], F_SETFL, O_NONBLOCK);
  return WorkerProcess(pid, sockets[0], log[0]);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      log_(std::exchange(other.log_, -1)),
      inbox_(std::move(other.inbox_)),
      log_text_(std::move(other.log_text_)) {}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    // It holds nothing worth an orderly end, and libtpu's can take a while.
    kill(pid_, SIGKILL);
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  close_fd(socket_);
  close_fd(log_);
}

void WorkerProcess::drain_log() {
  char chunk[4096];
  ssize_t n;
  while ((n = read(log_, chunk, sizeof(chunk))) > 0)
    log_text_.append(chunk, static_cast<size_t>(n));
  if (n == 0) close_fd(log_);
  if (log_text_.size() > kMaxLog) log_text_.erase(0, log_text_.size() - kMaxLog / 2);
}

WorkerProcess::Death WorkerProcess::bury(bool timed_out, std::chrono::milliseconds limit) {
  if (timed_out) kill(pid_, SIGKILL);
  close_fd(socket_);
  int status = 0;
  // A process that gave up its socket is on its way out; one that lingers is pushed.
  const auto patience = Clock::now() + std::chrono::seconds(5);
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > patience) kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  if (log_ >= 0) drain_log();
  Death death{.timed_out = timed_out, .status = status, .last_lines = last_lines(log_text_)};
  if (timed_out) {
    death.what = fmt::format("did not answer within {:g} s", limit.count() / 1000.0);
  } else if (WIFSIGNALED(status)) {
    death.what = "was killed by " + signal_name(WTERMSIG(status));
  } else {
    death.what = fmt::format("ended with exit status {}", WEXITSTATUS(status));
  }
  return death;
}

std::variant<Frame, WorkerProcess::Death> WorkerProcess::exchange(std::string frame,
                                                                  std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  std::string_view left = frame;
  log_text_.clear();
  while (true) {
    const auto rest =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (rest.count() <= 0) return bury(/*timed_out=*/true, limit);
    pollfd fds[2] = {{socket_, static_cast<short>(POLLIN | (left.empty() ? 0 : POLLOUT)), 0},
                     {log_, POLLIN, 0}};  // poll ignores a negative descriptor
    if (poll(fds, 2, static_cast<int>(rest.count())) < 0 && errno != EINTR) {
      return bury(/*timed_out=*/true, limit);
    }
    if (fds[1].revents != 0) drain_log();
    if (fds[0].revents & POLLOUT) {
      const ssize_t n = send(socket_, left.data(), left.size(), MSG_NOSIGNAL);
      if (n > 0) left.remove_prefix(static_cast<size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR) return bury(/*timed_out=*/false, limit);
    }
    if (fds[0].revents & (POLLIN | POLLHUP | POLLERR)) {
      char chunk[1 << 16];
      const ssize_t n = recv(socket_, chunk, sizeof(chunk), 0);
      if (n > 0) inbox_.append(chunk, static_cast<size_t>(n));
      Result<std::optional<Frame>> answer = take_frame(inbox_);
      if (answer && *answer) return std::move(**answer);
      const bool ended = n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
      if (ended || !answer) {
        if (!ended) kill(pid_, SIGKILL);  // it talks nonsense
        return bury(/*timed_out=*/false, limit);
      }
    }
  }
}

}  // namespace gridless::tpu
