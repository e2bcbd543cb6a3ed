#include "device/process_view.hpp"

#include "device/fake_tree.hpp"

namespace ergometer::test {
namespace {

struct ProcTree : FakeTree {
  void host() const { write("/proc/2/comm", "kthreadd\n"); }
  void process(const std::string& pid, int parent, const std::string& ns_pids) const {
    write("/proc/" + pid + "/status", fmt::format("Name:\tx\nPPid:\t{}\nNSpid:\t{}\n", parent, ns_pids));
  }
  Owner owner(int pid, int root_pid = 0) const { return owner_of(view_processes(root(), root_pid), pid); }
  HostRoot root() const { return HostRoot(path()); }
};

TEST(ProcessView, TreeAndForeignOnTheHost) {
  ProcTree tree;
  tree.host();
  tree.process("self", 1, "100");
  tree.process("100", 1, "100");
  tree.process("101", 100, "101");
  tree.process("102", 101, "102");
  tree.process("500", 1, "500");
  tree.process("501", 500, "501");
  EXPECT_EQ(tree.owner(100), Owner::tree);
  EXPECT_EQ(tree.owner(102), Owner::tree);
  EXPECT_EQ(tree.owner(501), Owner::foreign);
  EXPECT_EQ(tree.owner(4000001), Owner::unknown) << "not in /proc";
  EXPECT_EQ(tree.owner(102, 101), Owner::tree);
  EXPECT_EQ(tree.owner(100, 101), Owner::foreign);
}

TEST(ProcessView, F86_ContainerCannotTell) {
  ProcTree tree;
  tree.write("/proc/2/comm", "python\n");  // the second process of a container is a program
  tree.process("self", 0, "77");
  tree.process("77", 1, "77");
  EXPECT_EQ(tree.owner(4000001), Owner::unknown);
  EXPECT_EQ(tree.owner(77), Owner::unknown) << "a host id that happens to be one here as well";
  ProcTree empty;
  EXPECT_EQ(empty.owner(77), Owner::unknown);
}

TEST(ProcessView, HostProcSeenFromAContainer) {
  ProcTree tree;
  tree.host();
  tree.process("self", 4000000, "4000001 77");  // this program: 77 inside
  tree.process("4000001", 4000000, "4000001 77");
  tree.process("4000002", 4000001, "4000002 78");
  tree.process("4000003", 4000002, "4000003 79");
  tree.process("5000000", 1, "5000000 78");  // another container
  EXPECT_EQ(tree.owner(4000002), Owner::tree);
  EXPECT_EQ(tree.owner(5000000), Owner::foreign);
  EXPECT_EQ(tree.owner(4000003, 79), Owner::tree) << "found by its number inside";
  EXPECT_EQ(tree.owner(4000003, 78), Owner::unknown) << "two containers have a 78";
}

TEST(ProcessView, OtherRanksProcessesAreOfTheTree) {
  ProcTree tree;
  tree.host();
  tree.process("self", 1, "100");
  tree.process("100", 1, "100");
  tree.process("200", 1, "200");  // another rank
  tree.process("201", 200, "201");
  tree.process("501", 1, "501");
  const auto more = std::make_shared<ProcessRoots>();
  const auto view = view_processes(tree.root(), 0, more);
  EXPECT_EQ(owner_of(view, 201), Owner::foreign);
  more->add(200);
  EXPECT_EQ(owner_of(view, 201), Owner::tree);
  EXPECT_EQ(owner_of(view, 501), Owner::foreign);
}

TEST(ProcessView, OtherRanksOfAContainerCannotBeTold) {
  ProcTree tree;
  tree.host();
  tree.process("self", 4000000, "4000001 77");
  tree.process("4000001", 4000000, "4000001 77");
  tree.process("4000002", 4000001, "4000002 78");
  tree.process("4000005", 1, "4000005 80");
  const auto more = std::make_shared<ProcessRoots>();
  const auto view = view_processes(tree.root(), 0, more);
  EXPECT_EQ(owner_of(view, 4000005), Owner::foreign);
  more->add(80);
  EXPECT_EQ(owner_of(view, 4000005), Owner::unknown) << "perhaps the other rank's, perhaps another container's";
  EXPECT_EQ(owner_of(view, 4000002), Owner::tree);
}

TEST(ProcessView, DamagedStatus) {
  ProcTree tree;
  tree.host();
  tree.process("self", 1, "100");
  tree.write("/proc/200/status", "PPid:\tx\n");
  tree.write("/proc/201/status", "");
  tree.process("300", 300, "300");  // its own parent
  EXPECT_EQ(tree.owner(200), Owner::unknown);
  EXPECT_EQ(tree.owner(201), Owner::unknown);
  EXPECT_EQ(tree.owner(300), Owner::unknown);
  EXPECT_EQ(tree.owner(-5), Owner::unknown);
}

}  // namespace
}  // namespace ergometer::test
