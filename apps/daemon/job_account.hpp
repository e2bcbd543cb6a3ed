// JobAccount: the readings of the time in which jobs are known, and what they amount to for each job, by the rules of
// src/analysis. Used by JobKeeper on its thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "daemon/feed.hpp"
#include "daemon/job_record.hpp"
#include "model/node.hpp"

namespace ergometer::daemon {

struct JobSpan {
  MonoTime begin, end;
};

// Two parts of one job, one after the other, as a whole: energies and uncertainties are added (what a device gets wrong
// is the same in both), coverage by time. What only one part knows is known for that part's time.
[[nodiscard]] std::vector<DomainEnergy> joined(const std::vector<DomainEnergy>& first, double first_s,
                                               const std::vector<DomainEnergy>& second, double second_s);

class JobAccount {
 public:
  // `node`: its GPUs decide what is in a total. `interval`: between readings.
  JobAccount(Node node, Nanos interval) : node_(std::move(node)), interval_(interval) {}
  // From here on readings of this feed are taken; of one that is followed already nothing changes. Before Feed::ask().
  void follow(const Feed& feed) { followed(feed); }
  // Takes what a feed has read since the last call.
  void take(const Feed& feed);
  // Goes on where an earlier daemon of this start of the machine ended. Readings of sensors that never come are left.
  void go_on_from(std::vector<LastReading> readings);
  [[nodiscard]] std::vector<LastReading> last_readings() const;
  // Of the newest reading of any sensor; unset before one.
  [[nodiscard]] std::optional<MonoTime> newest() const;
  // One entry a span: its domains. O(readings).
  [[nodiscard]] std::vector<std::vector<DomainEnergy>> energies(const std::vector<JobSpan>& spans) const;
  // Nobody asks for what is before any more.
  void forget();

 private:
  // The columns of one sensor that give energy.
  struct Followed {
    std::uint64_t cursor = 0;
    std::vector<std::size_t> columns;
    SensorInfo info;  // with these columns only
    std::vector<Row> rows;
    // Of long jobs each `stride`-th reading is kept, and the newest.
    std::uint64_t taken = 0, stride = 1;
    bool newest_is_extra = false;
  };
  Followed& followed(const Feed& feed);
  static void push(Followed& to, Row row);
  static void thin(Followed& of);
  static Trace trace_of(const Followed& sensor);

  Node node_;
  Nanos interval_;
  std::map<std::string, Followed> sensors_;
  std::map<std::string, std::vector<LastReading>> earlier_;  // by sensor
};

}  // namespace ergometer::daemon
