#include "daemon/job_keeper.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "daemon/job_account.hpp"
#include "daemon/job_record.hpp"
#include "daemon/limits.hpp"
#include "daemon/worker.hpp"
#include "device/control_restore.hpp"

namespace ergometer::daemon {
namespace {

// Accounts of long jobs take a while: no more of the time than this goes into them.
constexpr int kShareOfTime = 100;
constexpr Nanos kTidyEvery = std::chrono::hours(1);
// Who asks for a running job gets nothing older.
constexpr Nanos kFresh = std::chrono::seconds(1);

struct OpenJob {
  JobRecord record;  // as it was last written
  // What an earlier daemon counted, up to `from`; otherwise `from` is the job's begin.
  std::vector<DomainEnergy> before;
  MonoTime from;
  std::map<std::string, double> ended_others;
};

double overlap_s(MonoTime begin_a, MonoTime end_a, MonoTime begin_b, MonoTime end_b) {
  return std::max(0.0, seconds(std::min(end_a, end_b) - std::max(begin_a, begin_b)));
}

std::string state_line(const std::string& job, JobState state) {
  return fmt::format("{{\"job\":\"{}\",\"state\":\"{}\"}}\n", job, to_word(state));
}

}  // namespace

struct JobKeeper::State {
  explicit State(JobKeeperOptions o)
      : options(std::move(o)),
        folder(options.folder, options.node.name),
        account(options.node, options.interval),
        boot(boot_id(options.host.root)),
        worker([this] { return idle(); }) {}

  void find_open();
  std::optional<Nanos> idle();
  void read_sensors();
  void update();
  bool write(const JobRecord& record);
  void cut_all();
  void publish();
  void answer(const Caller& caller, const remote::Request& request, const Answer& take);
  Result<std::string> begin(const remote::JobNote& note);
  Result<std::string> end(const std::string& job);
  Result<std::string> tell(const Caller& caller, const std::string& job);
  OpenJob* find(const std::string& job);
  [[nodiscard]] MonoTime now() const { return options.host.clock->now(); }

  JobKeeperOptions options;
  JobFolder folder;
  JobAccount account;
  std::string boot;
  std::vector<OpenJob> jobs;
  std::optional<MonoTime> last_reading, last_update, next_update, next_tidying;
  std::vector<JobRecord> unwritten;  // of jobs that have ended
  std::string last_trouble;          // of writing: told once

  // What other threads ask for.
  struct Owner {
    uid_t uid;
    bool exclusive;
  };
  mutable std::mutex mutex;
  std::vector<Owner> owners;

  Worker worker;  // last: its tasks use the rest
};

OpenJob* JobKeeper::State::find(const std::string& job) {
  const auto at = std::ranges::find_if(jobs, [&](const OpenJob& one) { return one.record.job == job; });
  return at == jobs.end() ? nullptr : &*at;
}

void JobKeeper::State::publish() {
  const std::lock_guard lock(mutex);
  owners.clear();
  for (const auto& job : jobs) owners.push_back({static_cast<uid_t>(job.record.uid), job.record.exclusive});
}

void JobKeeper::State::find_open() {
  std::vector<Error> problems;
  auto records = folder.running(problems);
  for (const auto& problem : problems) options.note(problem.message);
  std::vector<LastReading> readings;
  for (auto& record : records) {
    if (record.boot_id != boot) {
      record.state = JobState::cut;
      record.last.clear();
      options.note(fmt::format("job {} was cut by a restart of the node", record.job));
      if (auto written = folder.write(record); !written) options.note(written.error().message);
      continue;
    }
    std::move(record.last.begin(), record.last.end(), std::back_inserter(readings));
    record.last.clear();
    OpenJob job{std::move(record), {}, {}, {}};
    job.before = job.record.domains;
    job.from = job.record.end;
    job.ended_others = job.record.others;
    options.note(fmt::format("goes on with job {}", job.record.job));
    jobs.push_back(std::move(job));
  }
  // Overlaps of those that still run are counted anew.
  for (auto& job : jobs)
    for (const auto& other : jobs) job.ended_others.erase(other.record.job);
  account.go_on_from(std::move(readings));
  publish();
}

// Asks all sensors at once; what does not answer in time is there for the next round.
void JobKeeper::State::read_sensors() {
  const auto feeds = options.feeds();
  std::vector<std::uint64_t> tickets;
  for (const auto& feed : feeds) {
    account.follow(*feed);
    tickets.push_back(feed->ask());
  }
  const auto deadline = now() + kLongestReading;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    feeds[i]->wait(tickets[i], std::max<Nanos>(Nanos{0}, deadline - now()));
    account.take(*feeds[i]);
  }
  last_reading = now();
}

void JobKeeper::State::update() {
  const auto begun = now();
  const auto wall = options.host.clock->wall();
  std::vector<JobSpan> spans;
  for (auto& job : jobs) {
    // Up to the newest reading, or the account would fall behind by a part of an interval.
    const auto end = std::max(job.from, account.newest().value_or(job.from));
    spans.push_back({job.from, end});
    job.record.end = end;
    job.record.end_wall = wall - (begun - end);
  }
  auto energies = account.energies(spans);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    auto& job = jobs[i];
    job.record.domains = job.from == job.record.begin ? std::move(energies[i])
                                                      : joined(job.before, seconds(job.from - job.record.begin),
                                                               energies[i], seconds(job.record.end - job.from));
    job.record.others = job.ended_others;
    for (const auto& other : jobs)
      if (&other != &job)
        job.record.others[other.record.job] =
            overlap_s(job.record.begin, job.record.end, other.record.begin, other.record.end);
    job.record.last = account.last_readings();
    write(job.record);
  }
  last_update = begun;
  next_update = now() + kShareOfTime * (now() - begun);
}

bool JobKeeper::State::write(const JobRecord& record) {
  const auto written = folder.write(record);
  const auto trouble = written ? std::string() : written.error().message;
  if (!trouble.empty() && trouble != last_trouble)
    options.note(fmt::format("{}; records are kept in memory and written when that is possible", trouble));
  last_trouble = trouble;
  return written.has_value();
}

std::optional<Nanos> JobKeeper::State::idle() {
  if (!next_tidying || now() >= *next_tidying) {
    folder.remove_older(options.host.clock->wall() - options.keep);
    next_tidying = now() + kTidyEvery;
  }
  std::erase_if(unwritten, [this](const JobRecord& record) { return write(record); });
  if (jobs.empty()) return unwritten.empty() ? std::max<Nanos>(Nanos{0}, *next_tidying - now()) : options.interval;
  if (!last_reading || now() >= *last_reading + options.interval) {
    read_sensors();
    if (!next_update || now() >= *next_update) update();
  }
  return std::max<Nanos>(Nanos{0}, *last_reading + options.interval - now());
}

// Whose end was lost (the daemon was not there) would be counted for ever: a job that gets the whole node is alone.
void JobKeeper::State::cut_all() {
  if (jobs.empty()) return;
  read_sensors();
  update();
  for (auto& job : jobs) {
    options.note(fmt::format("the end of job {} was never told", job.record.job));
    job.record.state = JobState::cut;
    job.record.last.clear();
    if (!write(job.record)) unwritten.push_back(std::move(job.record));
  }
  jobs.clear();
  account.forget();
}

Result<std::string> JobKeeper::State::begin(const remote::JobNote& note) {
  if (find(note.job)) return state_line(note.job, JobState::running);  // told by each of its steps
  if (note.exclusive) cut_all();
  const auto attempt = folder.set_aside(note.job);
  if (!attempt) options.note(attempt.error().message);
  OpenJob job;
  auto& r = job.record;
  r.job = note.job;
  r.user = note.user;
  r.uid = *note.uid;
  r.exclusive = note.exclusive;
  r.attempt = attempt.value_or(0);
  r.node = options.node.name;
  r.boot_id = boot;
  r.version = options.version;
  r.interval = options.interval;
  r.begin = r.end = job.from = now();
  r.begin_wall = r.end_wall = options.host.clock->wall();
  // Written first: the daemon may die before the sensors have answered.
  write(job.record);
  jobs.push_back(std::move(job));
  publish();
  read_sensors();
  update();
  return state_line(note.job, JobState::running);
}

Result<std::string> JobKeeper::State::end(const std::string& id) {
  if (!find(id)) {
    const auto record = folder.read(id);
    if (record && record->state != JobState::running) return state_line(id, record->state);
    return fail(ErrorCode::not_found, fmt::format("ergometerd knows of no job {} on this node", id),
                "its job_begin has not reached the daemon: docs/job-record.md");
  }
  const auto at = now();
  const auto wall = options.host.clock->wall();
  read_sensors();
  update();
  const auto job = std::ranges::find_if(jobs, [&](const OpenJob& one) { return one.record.job == id; });
  auto record = std::move(job->record);
  const auto ended = std::move(*job);
  jobs.erase(job);
  // The last reading is a moment after the end: what was then is the job's only up to its end.
  record.state = JobState::complete;
  record.end = std::max(at, ended.from);
  record.end_wall = wall;
  auto energies = account.energies({{ended.from, record.end}});
  record.domains = ended.from == record.begin ? std::move(energies.front())
                                              : joined(ended.before, seconds(ended.from - record.begin),
                                                       energies.front(), seconds(record.end - ended.from));
  record.last.clear();
  for (auto& other : jobs) {
    const auto both_s = overlap_s(record.begin, record.end, other.record.begin, record.end);
    other.ended_others[id] = both_s;
    record.others[other.record.job] = both_s;
  }
  if (!write(record)) unwritten.push_back(std::move(record));
  if (jobs.empty()) account.forget();
  publish();
  return state_line(id, JobState::complete);
}

Result<std::string> JobKeeper::State::tell(const Caller& caller, const std::string& id) {
  const auto refused = [&](std::int64_t owner) {
    return caller.peer.uid != 0 && static_cast<std::int64_t>(caller.peer.uid) != owner;
  };
  const auto denied = [&] {
    return fail(ErrorCode::permission_denied, fmt::format("permission denied: job {} belongs to another user", id),
                "only its owner and root may see it");
  };
  if (auto* job = find(id)) {
    if (refused(job->record.uid)) return denied();
    if (!last_update || now() >= *last_update + kFresh) {
      read_sensors();
      update();
    }
    return job_record_line(job->record);
  }
  const auto record = folder.read(id);
  if (!record && record.error().code == ErrorCode::not_found)
    return fail(ErrorCode::not_found, fmt::format("ergometerd knows of no job {} on this node", id),
                "it was never here, or its record has been removed after job-keep");
  if (!record) return tl::unexpected(record.error());
  if (refused(record->uid)) return denied();
  return job_record_line(*record);
}

void JobKeeper::State::answer(const Caller& caller, const remote::Request& request, const Answer& take) {
  using Kind = remote::Request::Kind;
  const auto reply = request.kind == Kind::job_begin ? begin(request.note)
                     : request.kind == Kind::job_end ? end(request.note.job)
                                                     : tell(caller, request.note.job);
  take(reply ? *reply : remote::error_line(reply.error()));
}

JobKeeper::JobKeeper(JobKeeperOptions options) : state_(std::make_unique<State>(std::move(options))) {
  state_->worker.add([s = state_.get()] { s->find_open(); });
}

JobKeeper::~JobKeeper() {
  state_->worker.stop();
  if (state_->jobs.empty()) return;
  state_->read_sensors();
  state_->update();
}

void JobKeeper::ask(const Caller& caller, remote::Request request, Answer answer) {
  state_->worker.add([s = state_.get(), caller, request = std::move(request), answer = std::move(answer)] {
    s->answer(caller, request, answer);
  });
}

bool JobKeeper::knows(uid_t uid) const {
  const std::lock_guard lock(state_->mutex);
  return std::ranges::any_of(state_->owners, [&](const auto& owner) { return owner.uid == uid; });
}

bool JobKeeper::has_node(uid_t uid) const {
  const std::lock_guard lock(state_->mutex);
  bool exclusive = false;
  for (const auto& owner : state_->owners) {
    if (owner.uid != uid) return false;
    exclusive |= owner.exclusive;
  }
  return exclusive;
}

}  // namespace ergometer::daemon
