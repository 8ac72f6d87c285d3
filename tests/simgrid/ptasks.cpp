// Runs a list of tasks on a platform with SimGrid and prints when each started, ended, and how.
//
// usage: ptasks PLATFORM SCENARIO [--cfg=... --log=...]
//
// SCENARIO holds one item per line, words separated by blanks (names of hosts may be quoted):
//   observer HOST                         where the actors of this program live (never turned off)
//   ptask ID START n HOST*n FLOPS*n k (FROM TO BYTES)*k       ranks are 0..n-1
//   all   ID START n HOST*n FLOPS BYTES   each rank computes FLOPS, sends BYTES to each other rank
//   ring  ID START n HOST*n FLOPS BYTES   each rank computes FLOPS, sends BYTES to the next rank
//   exec  ID START HOST FLOPS [priority=P] [bound=B] [threads=T]
//   comm  ID START SRC DST BYTES [rate=R]                     BYTES is an integer
//   sleep ID START HOST SECONDS
//   after ID k DEP*k                      start once these have completed (and START has come)
//   event DATE bandwidth|latency|pstate TARGET VALUE
//   event DATE host_off|host_on|link_off|link_on|suspend|resume|cancel TARGET
//   describe k HOST*k                     print facts: hosts, links, routes between these hosts
//   hosts                                 print the names of all hosts
//   joules k DATE*k                       print the energies of all at these dates (in order); needs
//                                         --cfg=plugin:host_energy and --cfg=plugin:link_energy
//   actors                                one actor per task: failures are dated (they are not otherwise)
//
// Prints "task ID START FINISH STATE" per task (17 digits, - where it did not happen), STATE being
// completed, failed, cancelled, dependency_failed, waiting or starved, after "joules host|link NAME J" for each
// date and each host and link, if asked for; then on stderr
// "time LOAD_S RUN_S PEAK_RSS_KB", on a processor. The dates of equal value are taken in the order of the file.

#include <simgrid/plugins/energy.h>
#include <simgrid/s4u.hpp>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace sg = simgrid::s4u;

struct Task {
  std::string id, kind, state = "waiting";
  double start = 0, started = NAN, finished = NAN;
  std::vector<sg::Host*> hosts;
  std::vector<double> flops;
  std::vector<std::pair<size_t, double>> flows; // position in the n * n matrix, bytes
  double amount = 0, bytes = 0, rate = 0, priority = 0, bound = 0;
  int threads = 1;
  std::vector<size_t> after, successors;
  bool own_actor = false, dependency_failed = false, cancelled = false;
  sg::ActivityPtr activity;
  sg::SemaphorePtr ready;
};

struct Item { // what the main actor does at a date
  double date;
  std::string what; // "start" or an event
  std::string target;
  double value;
  size_t task;
};

static std::vector<Task> tasks;
static std::unordered_map<std::string, size_t> by_id;
static std::vector<Item> items;
static std::vector<double> asked;

static double seconds() // of this process on a processor
{
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

static void read_options(std::istringstream& line, Task& task)
{
  std::string option;
  while (line >> option) {
    const auto at      = option.find('=');
    const double value = std::stod(option.substr(at + 1));
    const auto key     = option.substr(0, at);
    if (key == "rate")
      task.rate = value;
    else if (key == "priority")
      task.priority = value;
    else if (key == "bound")
      task.bound = value;
    else if (key == "threads")
      task.threads = static_cast<int>(value);
    else
      throw std::invalid_argument("unknown option " + option);
  }
}

static void read_task(const std::string& kind, std::istringstream& line, const sg::Engine& engine)
{
  Task task;
  task.kind = kind;
  line >> task.id >> task.start;
  const auto read_host = [&] {
    std::string name;
    line >> std::quoted(name);
    task.hosts.push_back(engine.host_by_name(name));
  };
  if (kind == "ptask" || kind == "all" || kind == "ring") {
    size_t n;
    line >> n;
    for (size_t i = 0; i < n; i++)
      read_host();
    if (kind == "ptask") {
      task.flops.resize(n);
      for (auto& f : task.flops)
        line >> f;
      size_t k, from, to;
      double bytes;
      line >> k;
      while (k-- > 0) {
        line >> from >> to >> bytes;
        task.flows.emplace_back(from * n + to, bytes);
      }
    } else
      line >> task.amount >> task.bytes;
  } else {
    read_host();
    if (kind == "comm")
      read_host();
    line >> task.amount;
    read_options(line, task);
  }
  if (!line && kind != "exec" && kind != "comm" && kind != "sleep")
    throw std::invalid_argument("truncated line of task " + task.id);
  by_id[task.id] = tasks.size();
  task.own_actor = kind == "sleep";
  tasks.push_back(std::move(task));
}

static void describe(std::istringstream& line, const sg::Engine& engine)
{
  sg::Engine::get_instance()->seal_platform(); // adds the loopback links
  size_t k;
  line >> k;
  std::vector<sg::Host*> hosts;
  for (std::string name; k > 0 && line >> std::quoted(name); k--)
    hosts.push_back(engine.host_by_name(name));
  for (const auto* host : hosts) {
    std::printf("host \"%s\" %d %lu %lu", host->get_cname(), host->get_core_count(), host->get_pstate(),
                host->get_pstate_count());
    for (unsigned long p = 0; p < host->get_pstate_count(); p++)
      std::printf(" %.17g", host->get_pstate_speed(p));
    std::printf("\n");
  }
  std::map<std::string, sg::Link*> links;
  for (const auto* src : hosts)
    for (const auto* dst : hosts) {
      std::vector<sg::Link*> route;
      double latency = 0;
      try {
        src->route_to(dst, route, &latency);
      } catch (const std::exception&) {
        continue;
      }
      std::printf("route \"%s\" \"%s\" %.17g", src->get_cname(), dst->get_cname(), latency);
      for (auto* link : route) {
        std::printf(" \"%s\"", link->get_cname());
        links[link->get_name()] = link;
      }
      std::printf("\n");
    }
  for (const auto& [name, link] : links)
    std::printf("link \"%s\" %.17g %.17g %d\n", name.c_str(), link->get_bandwidth(), link->get_latency(),
                link->get_sharing_policy() == sg::Link::SharingPolicy::FATPIPE);
}

static void read_scenario(const char* path, const sg::Engine& engine, sg::Host*& observer)
{
  std::ifstream file(path);
  if (!file)
    throw std::invalid_argument(std::string("cannot read ") + path);
  bool all_own = false;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kind;
    if (!(line >> kind))
      continue;
    if (kind == "observer") {
      line >> std::quoted(kind);
      observer = engine.host_by_name(kind);
    } else if (kind == "hosts") {
      for (const auto* host : engine.get_all_hosts())
        std::printf("name \"%s\"\n", host->get_cname());
    } else if (kind == "actors") {
      all_own = true;
    } else if (kind == "describe") {
      describe(line, engine);
    } else if (kind == "joules") {
      size_t k;
      double date;
      for (line >> k; k > 0 && line >> date; k--)
        asked.push_back(date);
    } else if (kind == "after") {
      size_t k;
      std::string id;
      line >> id >> k;
      const size_t task = by_id.at(id);
      for (std::string dep; k > 0 && line >> dep; k--) {
        tasks[task].after.push_back(by_id.at(dep));
        tasks[by_id.at(dep)].successors.push_back(task);
        tasks[by_id.at(dep)].own_actor = true;
      }
      tasks[task].own_actor = true;
    } else if (kind == "event") {
      Item item{0, "", "", 0, 0};
      line >> item.date >> item.what >> std::quoted(item.target) >> item.value;
      items.push_back(item);
    } else {
      read_task(kind, line, engine);
      items.push_back({tasks.back().start, "start", "", 0, tasks.size() - 1});
    }
  }
  for (auto& task : tasks)
    task.own_actor |= all_own;
  std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.date < b.date; });
}

static sg::ActivityPtr make_parallel(const Task& task)
{
  const size_t n = task.hosts.size();
  std::vector<double> flops(task.flops);
  std::vector<double> bytes;
  if (task.kind == "ptask") {
    if (not task.flows.empty())
      bytes.assign(n * n, 0.0);
    for (const auto& [position, amount] : task.flows)
      bytes[position] = amount;
  } else {
    flops.assign(n, task.amount);
    bytes.assign(n * n, task.kind == "all" ? task.bytes : 0.0);
    for (size_t i = 0; i < n; i++)
      if (task.kind == "all")
        bytes[i * n + i] = 0.0;
      else
        bytes[i * n + (i + 1) % n] = task.bytes;
  }
  auto exec = sg::Exec::init();
  exec->set_flops_amounts(flops)->set_bytes_amounts(bytes)->set_hosts(task.hosts);
  return exec;
}

static void start(Task& task)
{
  task.started = sg::Engine::get_clock();
  task.state   = "running";
  if (task.kind == "exec") {
    auto exec = sg::Exec::init()->set_flops_amount(task.amount)->set_host(task.hosts[0]);
    if (task.priority > 0)
      exec->set_priority(task.priority);
    if (task.bound > 0)
      exec->set_bound(task.bound);
    if (task.threads > 1)
      exec->set_thread_count(task.threads);
    task.activity = exec;
  } else if (task.kind == "comm") {
    auto comm = sg::Comm::sendto_init(task.hosts[0], task.hosts[1]);
    comm->set_payload_size(static_cast<uint64_t>(task.amount));
    if (task.rate > 0)
      comm->set_rate(task.rate);
    task.activity = comm;
  } else
    task.activity = make_parallel(task);
  task.activity->start();
}

static void finish(Task& task)
{
  try {
    task.activity->wait();
    task.state    = "completed";
    task.finished = task.activity->get_finish_time();
  } catch (const simgrid::Exception&) {
    task.state    = task.cancelled ? "cancelled" : "failed";
    task.finished = task.own_actor ? sg::Engine::get_clock() : NAN;
  }
  task.activity = nullptr;
}

static void live_alone(Task& task) // the life of a task that has an actor of its own
{
  sg::this_actor::sleep_until(task.start);
  for (size_t i = 0; i < task.after.size(); i++)
    task.ready->acquire();
  if (task.dependency_failed)
    task.state = "dependency_failed";
  else if (task.kind == "sleep") {
    task.started = sg::Engine::get_clock();
    task.state   = "running";
    sg::this_actor::on_exit([&task](bool killed) {
      task.state    = killed ? "failed" : "completed";
      task.finished = sg::Engine::get_clock();
    });
    sg::this_actor::sleep_for(task.amount);
    task.state = "completed";
  } else {
    start(task);
    finish(task);
  }
  for (const size_t next : task.successors) {
    tasks[next].dependency_failed |= task.state != "completed";
    tasks[next].ready->release();
  }
}

static void happen(const Item& item)
{
  const auto* engine = sg::Engine::get_instance();
  if (item.what == "bandwidth")
    sg::Link::by_name(item.target)->set_bandwidth(item.value);
  else if (item.what == "latency")
    sg::Link::by_name(item.target)->set_latency(item.value);
  else if (item.what == "pstate")
    engine->host_by_name(item.target)->set_pstate(static_cast<unsigned long>(item.value));
  else if (item.what == "host_off")
    engine->host_by_name(item.target)->turn_off();
  else if (item.what == "host_on")
    engine->host_by_name(item.target)->turn_on();
  else if (item.what == "link_off")
    sg::Link::by_name(item.target)->turn_off();
  else if (item.what == "link_on")
    sg::Link::by_name(item.target)->turn_on();
  else {
    Task& task = tasks[by_id.at(item.target)];
    if (not task.activity)
      return;
    if (item.what == "suspend")
      task.activity->suspend();
    else if (item.what == "resume")
      task.activity->resume();
    else if (item.what == "cancel") {
      task.cancelled = true;
      task.activity->cancel();
    } else
      throw std::invalid_argument("unknown event " + item.what);
  }
}

static void ask()
{
  const auto* engine = sg::Engine::get_instance();
  for (const double date : asked) {
    sg::this_actor::sleep_until(date);
    for (const auto* host : engine->get_all_hosts())
      std::printf("joules host \"%s\" %.17g\n", host->get_cname(), sg_host_get_consumed_energy(host));
    for (const auto* link : engine->get_all_links())
      std::printf("joules link \"%s\" %.17g\n", link->get_cname(), sg_link_get_consumed_energy(link));
  }
}

static void drop_finished(std::vector<size_t>& live) // so that memory holds what runs, not all that ran
{
  std::vector<size_t> still;
  for (const size_t i : live) {
    bool over;
    try {
      over = tasks[i].activity->test();
    } catch (const simgrid::Exception&) {
      over = true;
    }
    if (over)
      finish(tasks[i]);
    else
      still.push_back(i);
  }
  live.swap(still);
}

static void master()
{
  std::vector<size_t> live;
  size_t limit = 4096;
  for (const auto& item : items) {
    sg::this_actor::sleep_until(item.date);
    if (item.what != "start") {
      happen(item);
    } else if (not tasks[item.task].own_actor) {
      start(tasks[item.task]);
      live.push_back(item.task);
      if (live.size() >= limit) {
        drop_finished(live);
        limit = std::max<size_t>(4096, 2 * live.size());
      }
    }
  }
  for (const size_t i : live)
    finish(tasks[i]);
}

static void print_tasks()
{
  const auto print_date = [](double date) {
    if (std::isnan(date) || date < 0)
      std::printf(" -");
    else
      std::printf(" %.17g", date);
  };
  for (const auto& task : tasks) {
    std::printf("task %s", task.id.c_str());
    print_date(task.started);
    print_date(task.finished);
    std::printf(" %s\n", task.state == "running" ? "starved" : task.state.c_str());
  }
  std::fflush(stdout);
}

int main(int argc, char** argv)
{
  sg::Engine engine(&argc, argv);
  if (argc != 3) {
    std::fprintf(stderr, "usage: ptasks PLATFORM SCENARIO\n");
    return 2;
  }
  engine.load_platform(argv[1]);
  sg::Host* observer = engine.get_all_hosts().front();
  read_scenario(argv[2], engine, observer);
  for (size_t i = 0; i < tasks.size(); i++)
    if (tasks[i].own_actor) {
      tasks[i].ready = sg::Semaphore::create(0);
      // A sleep belongs to its host; the other actors only start tasks, and must outlive them.
      auto* place = tasks[i].kind == "sleep" ? tasks[i].hosts[0] : observer;
      sg::Actor::create("task", place, [i] { live_alone(tasks[i]); });
    }
  if (not asked.empty())
    sg::Actor::create("asker", observer, ask);
  sg::Actor::create("master", observer, master);
  sg::Engine::on_deadlock_cb([] {
    print_tasks();
    _exit(0);
  });
  const double loaded = seconds();
  engine.run();
  const double end = seconds();
  print_tasks();
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  std::fprintf(stderr, "time %.6f %.6f %ld\n", loaded, end - loaded, usage.ru_maxrss);
  return 0;
}
