#include "cluster/part.hpp"

#include <algorithm>

namespace ergometer {

Place place_of(const Launch* launch, const Machine& machine, const Whereabouts& here) {
  Place place;
  place.node = here.node;
  place.hostname = here.hostname;
  place.boot_id = machine.boot_id;
  place.time_namespace = machine.time_namespace;
  place.host_root = machine.host_root.string();
  place.job = here.job;
  place.step = here.step;
  place.job_user = here.job_user;
  place.container = here.container;
  place.cgroup = here.cgroup;
  if (launch) {
    place.launcher = launch->launcher;
    place.run_key = launch->key;
    place.world_size = launch->world_size;
  }
  return place;
}

Manifest run_of(Manifest part, const Launch& launch) {
  Parts parts;
  parts.run_key = launch.key;
  parts.launcher = launch.launcher;
  parts.nodes = launch.node_count;
  parts.ranks = launch.world_size;
  if (part.place) parts.clock_reference = part.place->node;
  part.nodes = launch.expected_nodes;
  part.place.reset();
  part.parts = std::move(parts);
  return part;
}

RanksTogether ranks_together(const std::vector<Member>& members, const std::string& node) {
  RanksTogether out;
  for (const auto& member : members) {
    RankEnd rank;
    rank.rank = member.rank.value_or(-1);
    rank.pid = member.pid;
    rank.node = member.node;
    rank.exit_code = member.exit_code;
    rank.signal = member.signal;
    rank.begin = member.begin;
    rank.end = member.end;
    out.ranks.push_back(std::move(rank));
    if (member.node != node && !member.node.empty() && std::ranges::find(out.aliases, member.node) == out.aliases.end())
      out.aliases.push_back(member.node);
    if (member.begin) out.begin = out.begin ? std::min(*out.begin, *member.begin) : *member.begin;
    if (member.end) out.end = out.end ? std::max(*out.end, *member.end) : *member.end;
  }
  std::ranges::stable_sort(out.ranks, {}, &RankEnd::rank);
  for (const auto& rank : out.ranks) {
    if (!rank.exit_code || out.exit_code.value_or(0) != 0) continue;
    out.exit_code = rank.exit_code;
    out.signal = rank.signal;
  }
  return out;
}

}  // namespace ergometer
