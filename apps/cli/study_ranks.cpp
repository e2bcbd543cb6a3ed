// What the study engine starts instead of the command itself: copies of it as ranks of one job here, or one rank under a
// launcher, of which the first on each node measures.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include "base/environment.hpp"
#include "run_process.hpp"
#include "study.hpp"
#include "study_world.hpp"

namespace ergometer::cli {
namespace {
namespace fs = std::filesystem;

constexpr int kMostRanks = 1024;

// A port that nobody uses now, for ranks that meet over TCP.
int free_port() {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  int port = 29500;
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0)
    port = ntohs(address.sin_port);
  if (fd >= 0) ::close(fd);
  return port;
}

// argv for exec: pointers into `words`.
std::vector<char*> exec_words(std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  return argv;
}

std::string first_variable(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = environment.find(name); found != environment.end()) return found->second;
  return {};
}

std::string node_name(const Environment& environment) {
  // Several nodes of a batch system may lie on one host.
  auto name = first_variable(environment, {"SLURMD_NODENAME"});
  if (!name.empty()) return name;
  char host[256] = {};
  return ::gethostname(host, sizeof host - 1) == 0 ? host : "node";
}

int replace_by(std::vector<std::string> words) {
  auto argv = exec_words(words);
  ::execvp(argv[0], argv.data());
  return report_error({ErrorCode::io, fmt::format("cannot start {}", words.front()), ""}, kNotExecutable);
}

}  // namespace

int study_ranks(const Context& context, int ranks) {
  if (context.measured_command.empty() || ranks < 1 || ranks > kMostRanks)
    return report_error({ErrorCode::invalid_argument, "study ranks needs a number and a command", "it is started by study run"});
  const auto file = find_command(context.measured_command.front());
  if (!file) return report_error(file.error(), kNotFound);
  auto words = context.measured_command;
  auto argv = exec_words(words);
  const auto port = fmt::to_string(free_port());
  std::vector<pid_t> pids;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      // The variables of torchrun, which most programs know.
      const auto number = fmt::to_string(rank), count = fmt::to_string(ranks);
      for (const auto& [name, value] : {std::pair{"RANK", &number}, {"LOCAL_RANK", &number}, {"WORLD_SIZE", &count},
                                        {"LOCAL_WORLD_SIZE", &count}, {"MASTER_PORT", &port}})
        ::setenv(name, value->c_str(), 1);
      ::setenv("MASTER_ADDR", "127.0.0.1", 1);
      ::execv(file->c_str(), argv.data());
      ::_exit(kNotExecutable);
    }
    if (pid > 0) pids.push_back(pid);
  }
  int code = static_cast<int>(pids.size()) == ranks ? 0 : kCannotMeasure;
  for (std::size_t left = pids.size(); left > 0; --left) {
    int status = 0;
    if (::wait(&status) < 0) break;
    const int one = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (one == 0 || code != 0) continue;
    code = one;
    // The others would wait for the one that is gone.
    for (const pid_t pid : pids) ::kill(pid, SIGTERM);
  }
  return code;
}

int study_rank(const Context& context, const std::string& output, const std::vector<std::string>& measure) {
  if (context.measured_command.empty())
    return report_error({ErrorCode::invalid_argument, "study rank needs a command", "it is started by study run"});
  const auto environment = current_environment();
  const auto local = first_variable(environment, {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID",
                                                  "PMI_LOCAL_RANK", "LOCAL_RANK"});
  if (!local.empty() && local != "0") return replace_by(context.measured_command);
  std::error_code ec;
  fs::create_directories(output, ec);
  auto words = tool_words(context);
  const auto node = node_name(environment);
  for (const auto& word : {std::string("run"), std::string("-o"), (fs::path(output) / node).string(),
                           std::string("--name"), node, std::string("--quiet")})
    words.push_back(word);
  words.insert(words.end(), measure.begin(), measure.end());
  words.push_back("--");
  words.insert(words.end(), context.measured_command.begin(), context.measured_command.end());
  // The engine wants each node's record on its own.
  ::setenv("ERGOMETER_LAUNCH", "", 1);
  return replace_by(std::move(words));
}

}  // namespace ergometer::cli
