// `ergometer study plan|run|status|show`: any program under every combination of limits, clocks, GPUs and parameters.
#include "study.hpp"

#include <memory>

namespace ergometer::cli {
namespace {

void add_source(CLI::App& app, StudyOptions& options) {
  app.add_option("STUDY", options.study, "A study file, a built-in study (demo, frey2022, caspart2022), or a study's folder")
      ->required();
  app.add_option("-o,--output", options.output, "Folder of the study (default: STORE/NAME)")->type_name("FOLDER");
  app.add_option("--store", options.store, "Folder for new studies")->type_name("DIR")->capture_default_str();
}

void add_overrides(CLI::App& app, StudyOptions& options) {
  app.add_option("--set", options.set, "A parameter of the study's command, as in data=/data; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  app.add_option("--levels", options.levels,
                 "Other levels of a factor, as in gpus=1,2; none take the factor out: power_limit=")
      ->type_name("FACTOR=LIST")
      ->allow_extra_args(false);
  app.add_option("--design", options.design, "Another design than the file's")
      ->check(CLI::IsMember({"full", "one-at-a-time", "fraction", "cells"}));
  app.add_option("--executor", options.executor, "Another place than the file's")
      ->check(CLI::IsMember({"here", "mpirun", "srun", "sbatch"}));
  app.add_option("--control-command", options.site_command,
                 "The site's own command that sets limits: it is called with NAME DEVICE VALUE")
      ->type_name("COMMAND");
}

// Started by the engine, not by people.
void add_helpers(CLI::App& study, Context& context, const std::shared_ptr<StudyOptions>& options) {
  const auto ranks = std::make_shared<int>(1);
  auto* ranks_app = study.add_subcommand("ranks", "Starts copies of a program as ranks of one job");
  ranks_app->group("");
  ranks_app->add_option("RANKS", *ranks)->required();
  ranks_app->callback([&context, ranks] { context.exit_code = study_ranks(context, *ranks); });

  const auto measure = std::make_shared<std::vector<std::string>>();
  auto* rank_app = study.add_subcommand("rank", "One rank under a launcher: the first of a node measures it");
  rank_app->group("");
  rank_app->add_option("-o,--output", options->output)->required();
  rank_app->add_option("--measure", *measure)->allow_extra_args(false);
  rank_app->callback([&context, options, measure] { context.exit_code = study_rank(context, options->output, *measure); });

  const auto runs = std::make_shared<std::string>();
  auto* job_app = study.add_subcommand("job", "The runs of one batch job");
  job_app->group("");
  job_app->add_option("STUDY", options->study)->required();
  job_app->add_option("--runs", *runs)->required();
  job_app->add_option("--control-command", options->site_command);
  job_app->callback([&context, options, runs] { context.exit_code = study_job(context, *options, *runs); });
}

}  // namespace

void add_study(CLI::App& app, Context& context) {
  auto* study = app.add_subcommand("study", "Run a program under every combination of settings, and compare");
  study->require_subcommand(1);
  study->fallthrough();
  const auto options = std::make_shared<StudyOptions>();

  auto* plan = study->add_subcommand("plan", "What a study would do here, and what is missing for it; changes nothing");
  add_source(*plan, *options);
  add_overrides(*plan, *options);
  plan->add_flag("--all", options->all, "Show every run of the order");
  plan->callback([&context, options] { context.exit_code = study_plan(context, *options); });

  auto* run = study->add_subcommand("run", "Run a study, or go on with one that was interrupted");
  add_source(*run, *options);
  add_overrides(*run, *options);
  run->add_flag("--retry", options->retry, "Also run again what failed or was not valid");
  run->footer(
      "Runs that have ended are never repeated. Every setting is put back when the study ends, however it ends.\n\n"
      "Examples:\n"
      "  ergometer study run caps.toml\n"
      "  ergometer study run frey2022 --levels power_limit= --levels graphics_clock= --levels gpus=1\n");
  run->callback([&context, options] { context.exit_code = study_run(context, *options); });

  auto* status = study->add_subcommand("status", "How far a study is, and what is wrong with its runs");
  add_source(*status, *options);
  status->callback([&context, options] { context.exit_code = study_status(*options); });

  auto* show = study->add_subcommand("show", "Metrics by cell, effects and interactions, best settings");
  add_source(*show, *options);
  show->add_option("--metric", options->metric, "Effects on this metric (default: energy per epoch, or energy)")
      ->type_name("NAME");
  show->add_option("--where", options->where, "Only runs at this level, as in batch=256; may be repeated")
      ->type_name("FACTOR=LEVEL");
  show->add_option("--predict", options->predict, "Time and energy by the power laws, as in gpus=16; may be repeated")
      ->type_name("FACTOR=NUMBER");
  show->add_flag("--json", options->json, "Print the study's table.json");
  show->callback([&context, options] { context.exit_code = study_show(*options); });

  add_helpers(*study, context, options);
}

}  // namespace ergometer::cli
