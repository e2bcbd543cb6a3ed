// The daemon's protocol: what one side says the other understands, and nothing else.
#include "device/remote/protocol.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "device/remote/control_protocol.hpp"

namespace ergometer::remote {
namespace {

TEST(DaemonProtocol, RequestsSurvive) {
  const auto list = parse_request(request_line({}));
  ASSERT_TRUE(list);
  EXPECT_EQ(list->kind, Request::Kind::list);
  const auto first = parse_request(request_line({Request::Kind::read, "rapl", std::nullopt}));
  ASSERT_TRUE(first);
  EXPECT_EQ(first->sensor, "rapl");
  EXPECT_FALSE(first->after);
  const auto next = parse_request(request_line({Request::Kind::read, "rapl", 42}));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->kind, Request::Kind::read);
  EXPECT_EQ(next->after, 42u);
}

TEST(DaemonProtocol, RefusesRequestsThatMeanNothing) {
  for (const char* text : {"", "GET / HTTP/1.1", "[]", "{\"do\":\"read\"}", "{\"do\":\"set\",\"sensor\":\"rapl\"}",
                           "{\"do\":\"read\",\"sensor\":\"rapl\",\"after\":-1}", "{\"do\":7}", "{}"})
    EXPECT_FALSE(parse_request(text)) << text;
}

TEST(DaemonProtocol, LeasesSurvive) {
  Request lease{Request::Kind::lease, {}, {}, "study demo"};
  lease.controls = {{"gpu/0/power", "nvml", "GPU-1", {"200 W", "250 W"}}, {"cpu/0/governor", "cpufreq", "policy0", {"x"}}};
  const auto back = parse_request(request_line(lease));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->kind, Request::Kind::lease);
  EXPECT_EQ(back->holder, "study demo");
  ASSERT_EQ(back->controls.size(), 2u);
  EXPECT_EQ(back->controls[0].device_id, "GPU-1");
  EXPECT_EQ(back->controls[0].values, lease.controls[0].values);
  Request apply{Request::Kind::apply, {}, {}};
  apply.settings = {{1, "x"}, {0, "250 W"}};
  const auto applied = parse_request(request_line(apply));
  ASSERT_TRUE(applied);
  EXPECT_EQ(applied->kind, Request::Kind::apply);
  ASSERT_EQ(applied->settings.size(), 2u);
  EXPECT_EQ(applied->settings[1].value, "250 W");
  for (const auto kind : {Request::Kind::observe, Request::Kind::restore})
    EXPECT_EQ(parse_request(request_line({kind, {}, {}})).value().kind, kind);
}

TEST(DaemonProtocol, WhatIsSaidOfJobs) {
  const auto begin = parse_request(R"({"job_begin":{"job":"12_3","uid":1001,"user":"anna","exclusive":true}})");
  ASSERT_TRUE(begin);
  EXPECT_EQ(begin->kind, Request::Kind::job_begin);
  EXPECT_EQ(begin->note.job, "12_3");
  EXPECT_EQ(begin->note.uid, 1001);
  EXPECT_EQ(begin->note.user, "anna");
  EXPECT_TRUE(begin->note.exclusive);
  EXPECT_EQ(request_line(*begin), R"({"job_begin":{"job":"12_3","uid":1001,"user":"anna","exclusive":true}})" "\n");
  const auto end = parse_request(R"({"job_end":{"job":"12"}})");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, Request::Kind::job_end);
  EXPECT_EQ(request_line(*end), "{\"job_end\":{\"job\":\"12\"}}\n");
  const auto query = parse_request(R"({"job":"12"})");
  ASSERT_TRUE(query);
  EXPECT_EQ(query->kind, Request::Kind::job);
  EXPECT_EQ(request_line(*query), "{\"job\":\"12\"}\n");
  for (const char* text : {R"({"job_begin":{"job":"12","user":"anna"}})", R"({"job_begin":{"job":"12","uid":-1,"user":"a"}})",
                           R"({"job_begin":{"job":"12","uid":4294967295,"user":"a"}})", R"({"job_begin":"12"})",
                           R"({"job_begin":{"job":"../x","uid":1,"user":"a"}})", R"({"job_end":{}})", R"({"job":"a/b"})",
                           R"({"job":""})", R"({"job":12})"})
    EXPECT_FALSE(parse_request(text)) << text;
}

TEST(DaemonProtocol, AnswersAboutControlsSurvive) {
  EXPECT_EQ(parse_lease_answer(lease_answer_line(7)), 7);
  const auto applied = parse_applied(applied_line({{2, "250 W", "200 W", false}, {0, "1200 MHz", std::nullopt, true}}));
  ASSERT_TRUE(applied);
  ASSERT_EQ(applied->size(), 2u);
  EXPECT_EQ((*applied)[0].control, 2);
  EXPECT_EQ((*applied)[0].effective, "200 W");
  EXPECT_FALSE((*applied)[0].in_effect);
  EXPECT_FALSE((*applied)[1].effective);
  const auto restored = parse_restored(restored_line({{1, {"gpu/0/power", RestoreOutcome::foreign, "text", "hint"}}}));
  ASSERT_TRUE(restored);
  EXPECT_EQ((*restored)[0].control, 1);
  EXPECT_EQ((*restored)[0].what.outcome, RestoreOutcome::foreign);
  EXPECT_EQ((*restored)[0].what.hint, "hint");
  const auto odd = parse_restored(R"({"restored":[{"control":0,"outcome":"better"}]})");
  ASSERT_TRUE(odd);
  EXPECT_EQ((*odd)[0].what.outcome, RestoreOutcome::failed) << "a word that is not known is no success";
  for (const char* text : {"", "[]", "{}", R"({"applied":[{"control":"x"}]})", R"({"leased":-1})"}) {
    EXPECT_FALSE(parse_applied(text)) << text;
    EXPECT_FALSE(parse_lease_answer(text)) << text;
    EXPECT_FALSE(parse_restored(text)) << text;
  }
  const auto refused = parse_applied(error_line({ErrorCode::exists, "held by ada", "wait"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "held by ada");
}

TEST(DaemonProtocol, ValuesSurviveToTheLastBit) {
  Batch batch{9, 2, true, {}, {}};
  batch.rows.push_back({mono_ns(INT64_MAX), Nanos{0}, {0.1 + 0.2, std::nullopt}});
  batch.rows.push_back({mono_ns(2), Nanos{0}, {std::numeric_limits<double>::quiet_NaN(), -0.0}});
  batch.events.push_back({"lost", "gone \"away\"\n"});
  const auto line = batch_line(batch);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto back = parse_batch(line, 2);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->cursor, 9u);
  EXPECT_EQ(back->lost, 2u);
  EXPECT_TRUE(back->more);
  ASSERT_EQ(back->rows.size(), 2u);
  EXPECT_EQ(to_ns(back->rows[0].t), INT64_MAX);
  EXPECT_EQ(back->rows[0].values[0], 0.1 + 0.2);
  EXPECT_FALSE(back->rows[0].values[1]);
  EXPECT_FALSE(back->rows[1].values[0]) << "what is no number is missing";
  ASSERT_EQ(back->events.size(), 1u);
  EXPECT_EQ(back->events[0].detail, "gone \"away\"\n");
  EXPECT_FALSE(parse_batch(line, 3)) << "a row of another width";
}

TEST(DaemonProtocol, SensorsSurvive) {
  SensorInfo sensor{"rapl", "rapl-perf", {}, std::chrono::milliseconds(50), false, "a note"};
  Channel c;
  c.column = "package_0_energy_j";
  c.quantity = Quantity::energy;
  c.unit = "J";
  c.behaviour = Behaviour::counter;
  c.domain = "package/0";
  c.scope = Scope::package;
  c.method = Method::counter;
  c.range = 262143.32885;
  sensor.channels = {c};
  const auto back = parse_sensors(sensors_line({sensor}));
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 1u);
  EXPECT_EQ(back->front().name, "rapl");
  EXPECT_EQ(back->front().interval, Nanos(std::chrono::milliseconds(50)));
  ASSERT_EQ(back->front().channels.size(), 1u);
  EXPECT_EQ(back->front().channels[0].method, Method::counter);
  EXPECT_EQ(back->front().channels[0].range, 262143.32885);
}

TEST(DaemonProtocol, AnErrorIsAnAnswerToEverything) {
  const auto line = error_line({ErrorCode::permission_denied, "no", "ask"});
  for (const auto& error : {parse_sensors(line).error(), parse_batch(line, 1).error(), parse_greeting(line).error()}) {
    EXPECT_EQ(error.code, ErrorCode::permission_denied);
    EXPECT_EQ(error.message, "no");
    EXPECT_EQ(error.hint, "ask");
  }
}

TEST(DaemonProtocol, AnotherVersionIsNamed) {
  EXPECT_EQ(to_ns(parse_greeting(greeting_line("1.2.3", mono_ns(77))).value()), 77);
  const auto other = parse_greeting("{\"schema\":\"ergometer.daemon/2\",\"version\":\"9.1.0\",\"now_ns\":1}");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
  EXPECT_NE(other.error().message.find("9.1.0"), std::string::npos);
  EXPECT_NE(other.error().message.find("ergometer.daemon/2"), std::string::npos);
  EXPECT_EQ(parse_greeting("SSH-2.0-OpenSSH_9.2").error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace ergometer::remote
