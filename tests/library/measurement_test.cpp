// include/ergometer/ergometer.hpp, used as a program outside this project uses it.
#include "ergometer/ergometer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "support/temp_dir.hpp"

namespace ergometer {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using test::TempDir;

// An energy counter of 100 W.
constexpr const char* kScenario = R"([[sensor]]
name = "package"
domain = "package/0"
scope = "package"
counter = true
interval = "20ms"
shape = { kind = "constant", value_w = 100 }
)";

class MeasurementTest : public testing::Test {
 protected:
  MeasurementTest() {
    dir.write("scenario.toml", kScenario);
    options.sensors = {"fake=" + (dir / "scenario.toml").string()};
    options.run_dir = (dir / "run").string();
  }
  // Every file of the run: its content and when it was written.
  std::map<std::string, std::pair<std::string, fs::file_time_type>> files() const {
    std::map<std::string, std::pair<std::string, fs::file_time_type>> found;
    for (const auto& entry : fs::recursive_directory_iterator(dir.path()))
      if (entry.is_regular_file()) {
        const auto name = fs::relative(entry.path(), dir.path()).string();
        found[name] = {dir.read(name), entry.last_write_time()};
      }
    return found;
  }
  bool run_says(const std::string& text) const { return dir.read("run/run.json").find(text) != std::string::npos; }

  TempDir dir;
  MeasurementOptions options;
};

// A variable of this process for the length of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~ScopedVariable() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST_F(MeasurementTest, EnergyOfHalfASecond) {
  Measurement measurement(options);
  ASSERT_EQ(measurement.error(), "");
  std::this_thread::sleep_for(500ms);
  const auto& result = measurement.stop();
  ASSERT_EQ(measurement.error(), "");
  ASSERT_TRUE(result.energy_j && result.uncertainty_j);
  // On a busy machine the half second becomes longer, and the energy grows with it.
  EXPECT_GE(*result.energy_j, 50 * 0.8 - *result.uncertainty_j);
  EXPECT_NEAR(*result.energy_j, 100 * result.duration_s, 0.2 * 50 + *result.uncertainty_j);
  ASSERT_EQ(result.domains.size(), 1u);
  const auto& domain = result.domains[0];
  EXPECT_EQ(domain.domain, "package/0");
  EXPECT_EQ(domain.method, "counter");
  EXPECT_TRUE(domain.measured);
  EXPECT_TRUE(domain.in_total);
  EXPECT_EQ(domain.energy_j, result.energy_j);
  EXPECT_GT(domain.coverage, 0.9);
}

TEST_F(MeasurementTest, F33_SecondStopIsTheFirst) {
  std::map<std::string, std::pair<std::string, fs::file_time_type>> written;
  {
    Measurement measurement(options);
    ASSERT_EQ(measurement.error(), "");
    std::this_thread::sleep_for(200ms);
    const MeasurementResult first = measurement.stop();
    ASSERT_EQ(measurement.error(), "");
    ASSERT_TRUE(first.energy_j);
    written = files();
    EXPECT_TRUE(run_says("\"state\": \"complete\""));
    std::this_thread::sleep_for(200ms);
    const MeasurementResult second = measurement.stop();
    EXPECT_EQ(measurement.error(), "");
    EXPECT_EQ(second.energy_j, first.energy_j);
    EXPECT_EQ(second.duration_s, first.duration_s);
    EXPECT_EQ(second.domains.size(), first.domains.size());
    EXPECT_EQ(second.warnings, first.warnings);
    EXPECT_EQ(files(), written);
  }
  EXPECT_EQ(files(), written) << "the destructor must not write again";
}

TEST_F(MeasurementTest, NotStopped) {
  {
    Measurement measurement(options);
    ASSERT_EQ(measurement.error(), "");
    std::this_thread::sleep_for(100ms);
  }
  EXPECT_TRUE(run_says("\"state\": \"running\""));
  EXPECT_FALSE(run_says("complete"));
  bool samples = false;
  for (const auto& [name, file] : files())
    samples = samples || (name.find("/samples/package.csv") != std::string::npos && !file.first.empty());
  EXPECT_TRUE(samples) << "what was read before the end must be there";
}

TEST_F(MeasurementTest, MovedMeasurementGoesOn) {
  std::optional<Measurement> first(options);
  Measurement second(std::move(*first));
  first.reset();
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(second.stop().energy_j);
  EXPECT_EQ(second.error(), "");
  EXPECT_TRUE(run_says("\"state\": \"complete\""));
}

TEST_F(MeasurementTest, UnknownSensor) {
  options.sensors = {"nvlm"};
  Measurement measurement(options);
  EXPECT_NE(measurement.error().find("nvlm"), std::string::npos) << measurement.error();
  EXPECT_NE(measurement.error().find("did you mean \"nvml\"?"), std::string::npos) << measurement.error();
  EXPECT_FALSE(measurement.stop().energy_j);
  EXPECT_NE(measurement.error(), "") << "stop() must not forget why nothing was measured";
  EXPECT_FALSE(fs::exists(options.run_dir));
}

TEST_F(MeasurementTest, FolderIsNotEmpty) {
  dir.write("run/notes.txt", "mine");
  Measurement measurement(options);
  EXPECT_NE(measurement.error().find(options.run_dir + " exists and is not empty"), std::string::npos)
      << measurement.error();
  EXPECT_FALSE(measurement.stop().energy_j);
  EXPECT_EQ(dir.read("run/notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(dir / "run/run.json"));
}

TEST_F(MeasurementTest, FolderIsEmpty) {
  fs::create_directory(options.run_dir);
  Measurement measurement(options);
  EXPECT_EQ(measurement.error(), "");
}

TEST_F(MeasurementTest, IntervalMakesNoSense) {
  for (const double interval : {0.0, -0.1, std::nan(""), 1e-12, 1e300, double{INFINITY}}) {
    options.interval_s = interval;
    Measurement measurement(options);
    EXPECT_NE(measurement.error().find("interval_s"), std::string::npos) << interval;
    EXPECT_FALSE(measurement.stop().energy_j);
    EXPECT_FALSE(fs::exists(options.run_dir));
  }
}

TEST_F(MeasurementTest, TemporaryFolderIsGoneAfterStop) {
  fs::create_directory(dir / "tmp");
  const ScopedVariable tmp("TMPDIR", (dir / "tmp").string());
  options.run_dir.clear();
  Measurement measurement(options);
  ASSERT_EQ(measurement.error(), "");
  EXPECT_FALSE(fs::is_empty(dir / "tmp"));
  std::this_thread::sleep_for(100ms);
  EXPECT_TRUE(measurement.stop().energy_j);
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
  EXPECT_TRUE(measurement.stop().energy_j);
}

TEST_F(MeasurementTest, TemporaryFolderIsGoneWithoutStop) {
  fs::create_directory(dir / "tmp");
  const ScopedVariable tmp("TMPDIR", (dir / "tmp").string());
  options.run_dir.clear();
  {
    Measurement measurement(options);
    ASSERT_EQ(measurement.error(), "");
  }
  EXPECT_TRUE(fs::is_empty(dir / "tmp"));
}

TEST_F(MeasurementTest, NoTemporaryFolder) {
  const ScopedVariable tmp("TMPDIR", (dir / "absent").string());
  options.run_dir.clear();
  Measurement measurement(options);
  EXPECT_NE(measurement.error().find("TMPDIR"), std::string::npos) << measurement.error();
  EXPECT_FALSE(measurement.stop().energy_j);
}

TEST_F(MeasurementTest, WorkingFolderIsGone) {
  const auto before = fs::current_path();
  fs::create_directory(dir / "work");
  fs::current_path(dir / "work");
  fs::remove(dir / "work");
  EXPECT_NO_THROW({
    Measurement measurement(options);
    EXPECT_EQ(measurement.error(), "");
    EXPECT_TRUE(measurement.stop().energy_j);
  });
  fs::current_path(before);
}

// F67: how a program ends while it measures, seen from outside.
class EndingTest : public MeasurementTest {
 protected:
  // Runs ergometer_ending and returns its wait status; none if it lives on for 2 s after it has decided to end.
  std::optional<int> end(const char* how) {
    const char* program = std::getenv("ERGOMETER_ENDING");
    if (!program) {
      ADD_FAILURE() << "ERGOMETER_ENDING must name the helper program";
      return std::nullopt;
    }
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
    const auto scenario = (dir / "scenario.toml").string();
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::execl(program, program, how, scenario.c_str(), options.run_dir.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(ends[1]);
    // A byte says that it is about to end; the end of the file that it ended without one.
    pollfd ready{ends[0], POLLIN, 0};
    char byte = 0;
    const bool decided = ::poll(&ready, 1, 30'000) == 1 && ::read(ends[0], &byte, 1) == 1;
    EXPECT_TRUE(decided) << "it never came to its end";
    const auto status = wait_for(pid);
    ::close(ends[0]);
    return status;
  }

 private:
  static std::optional<int> wait_for(pid_t pid) {
    const auto deadline = std::chrono::steady_clock::now() + 2s;
    int status = 0;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > deadline) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, &status, 0);
        return std::nullopt;
      }
      std::this_thread::sleep_for(5ms);
    }
    return status;
  }
};

TEST_F(EndingTest, F67_Exception) {
  const auto status = end("throw");
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_TRUE(run_says("\"state\": \"running\""));
}

TEST_F(EndingTest, F67_Exit) {
  const auto status = end("exit");
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 3);
  EXPECT_TRUE(run_says("\"state\": \"running\""));
}

TEST_F(EndingTest, F67_ExitWithAGlobalMeasurement) {
  const auto status = end("static");
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 3);
  EXPECT_TRUE(run_says("\"state\": \"running\""));
}

TEST_F(EndingTest, F67_Abort) {
  const auto status = end("abort");
  ASSERT_TRUE(status && WIFSIGNALED(*status));
  EXPECT_EQ(128 + WTERMSIG(*status), 134);
}

}  // namespace
}  // namespace ergometer
