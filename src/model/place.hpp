// Where one part of a run was measured, how its ranks ended and how its clock lies against the others: what part.json
// holds beyond a manifest. Used by Manifest.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"

namespace ergometer {

// One machine of a run and the launch that it took part in. What is not known is empty.
struct Place {
  std::string node;                  // the folder below nodes/
  std::vector<std::string> aliases;  // other node names of this machine (several slurmd on one host)
  std::string hostname;
  // boot_id, time_namespace and host_root together say which machine this is: they do not differ between containers,
  // and no two machines share them.
  std::string boot_id;         // /proc/sys/kernel/random/boot_id
  std::string time_namespace;  // of /proc/self/ns/time: "4026531834"
  std::string host_root;       // as given by --host-root, absolute; "" for the machine itself
  std::string launcher;        // "slurm", "ompi", "torchrun"
  std::string run_key;         // names the launch, the same for all its ranks: "slurm-JOB.STEP"
  std::string job, step, job_user;
  std::string container, cgroup;
  std::optional<int> world_size;  // ranks of the launch

  [[nodiscard]] bool same_machine(const Place& other) const {
    return !boot_id.empty() && boot_id == other.boot_id && time_namespace == other.time_namespace &&
           host_root == other.host_root;
  }
};

// One rank's command.
struct RankEnd {
  int rank = -1;  // -1: not a ranked job
  int pid = 0;
  std::string node;              // the node's name as its launcher says; may be an alias
  std::optional<int> exit_code;  // as the shell sees it: 128 + N after signal N; unset: it was never told
  std::optional<int> signal;
  std::optional<MonoTime> begin, end;  // of the command, in the part's own time; a reader gives the reference's
};

// The reference node's clock minus the own one, as measured at `at` of the own clock.
struct ClockOffset {
  MonoTime at;
  Nanos offset{0};  // t_reference = t_own + offset
  Nanos error{0};   // half-width: the true offset lies within, for sure (half a round trip, kernel's own bound)
};

// How a part's monotonic clock lies against that of another node, the reference.
struct ClockLink {
  enum class Method {
    same,      // one clock: the reference itself
    exchange,  // messages there and back
    wall,      // the wall clocks of both nodes
  };
  std::string reference;  // its folder below nodes/
  Method method = Method::same;
  std::vector<ClockOffset> offsets;  // by time; empty for `same`
};

// What run.json says of a run that several machines write, known when the first of them began. The names of its nodes,
// where the launcher tells them, are in Manifest::nodes.
struct Parts {
  std::string run_key, launcher;
  std::optional<int> nodes, ranks;  // how many there shall be
  std::string clock_reference;      // node whose clock the parts refer to; "" if each part says so itself
  // Not in the file, found by who reads it: nodes of which nothing was recorded, by name or as "2 of 3 nodes".
  std::vector<std::string> missing{};
};

}  // namespace ergometer
