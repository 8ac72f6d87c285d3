"""Accounts from what sacctmgr reads and prints."""

import contextlib
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slurm.recorded_runs import folder

from ptaskmodel.errors import SlurmError
from ptaskmodel.slurm.accounts.facts import accounts_of_jobs, commands_of
from ptaskmodel.slurm.accounts.sacctmgr import read_accounts
from ptaskmodel.slurm.jobs.request import JobRequest
from ptaskmodel.workload.works import DelayWork


def accounts_of(tmp_path, text):
    path = tmp_path / "sacctmgr.txt"
    path.write_text(text)
    return read_accounts(path)


def named(accounts):
    return {(one.account, one.user): one for one in accounts.associations}


def test_the_recorded_ones():
    found = read_accounts(folder("fairshare") / "sacctmgr.txt")
    assert found.qos["high"].priority == 100
    by_name = named(found)
    assert list(by_name)[:4] == [
        ("root", None),
        ("root", "root"),
        ("physics", None),
        ("biology", None),
    ]
    assert by_name["physics", None].shares == 3
    assert by_name["biology", "uucp"].shares == 2
    assert by_name["biology", "uucp"].qos == ("normal", "high")


def test_commands(tmp_path):
    found = accounts_of(
        tmp_path,
        """# how it was made
        sacctmgr -i add qos fast,slow priority=10 MaxTRESPerUser=cpu=64,gres/gpu=2
        add account a,b parent=root GrpTRES=cpu=100,mem=2G MaxJobs=3
        add account c parent=a Fairshare=parent
        create user ann account=a,c DefaultAccount=c MaxSubmitJobs=7
        modify qos fast set preempt=slow GraceTime=60 Flags=DenyOnLimit,OverPartQOS
        modify user where name=ann account=a set qos=+fast
        modify account a set GrpTRES=cpu=-1,node=4 MaxJobs=-1
        """,
    )
    by_name = named(found)
    assert found.qos["fast"].preempt == {"slow"}
    assert found.qos["fast"].flags == {"DENYONLIMIT", "OVERPARTQOS"}
    assert found.qos["slow"].limits.max_tres_per_user == {"cpu": 64, "gres/gpu": 2}
    assert by_name["b", None].limits.grp_tres == {"cpu": 100, "mem": 2048}
    assert by_name["a", None].limits.max_jobs is None
    assert by_name["a", None].limits.grp_tres == {"mem": 2048, "node": 4}
    assert by_name["c", None].shares is None
    assert by_name["c", "ann"].default
    assert not by_name["a", "ann"].default
    assert by_name["a", "ann"].qos == ("normal", "fast")
    assert by_name["a", "ann"].limits.max_submit == 7


def test_a_dump(tmp_path):
    found = accounts_of(
        tmp_path,
        """# To edit this file start with a cluster line for the new cluster
Cluster - 'oracle':Fairshare=1:QOS='normal'
Parent - 'root'
User - 'root':DefaultAccount='root':AdminLevel='Administrator':Fairshare=1
Account - 'physics':Description='physics: hard':Organization='x':Fairshare=3:GrpTRES=cpu=10
Parent - 'physics'
User - 'games':DefaultAccount='physics':Fairshare=2:QOS='high,normal':DefaultQOS='normal'
""",
    )
    by_name = named(found)
    assert by_name["physics", None].limits.grp_tres == {"cpu": 10}
    assert by_name["physics", None].parent == "root"
    assert by_name["physics", "games"].shares == 2
    assert by_name["physics", "games"].default_qos == "normal"
    assert "high" in found.qos


def test_tables(tmp_path):
    found = accounts_of(
        tmp_path,
        """Name|Priority|GraceTime|Preempt|PreemptMode|Flags|UsageFactor|MaxTRESPU|MaxJobsPU
normal|0|00:00:00||cluster||1.000000||
high|100|00:01:00|normal|cluster|DenyOnLimit|0.500000|cpu=8|2

Cluster|Account|User|Partition|Share|Priority|GrpJobs|MaxJobs|QOS|Def QOS|Par Name|
oracle|root|||1||||normal|||
oracle|root|root||1||||normal|||
oracle|physics|||3|5|10||normal||root|
oracle| optics|||parent||||normal||physics|
oracle| optics|ann||2|||4|high,normal|high||

Account|User|RawShares|NormShares|RawUsage|EffectvUsage|FairShare
root|||0.000000|1200||
 optics|ann|2|0.5|1200|1.0|0.5
""",
    )
    by_name = named(found)
    assert found.qos["high"].usage_factor == 0.5
    assert found.qos["high"].grace_time_s == 60
    assert found.qos["high"].limits.max_jobs == 2
    assert by_name["physics", None].limits.grp_jobs == 10
    assert by_name["optics", None].parent == "physics"
    assert by_name["optics", None].shares is None
    ann = by_name["optics", "ann"]
    assert (ann.shares, ann.default_qos, ann.usage_s, ann.limits.max_jobs) == (2, "high", 1200, 4)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("add user ann fairshare=1", ":1: user 'ann' has no account"),
        ("add user ann account=nowhere", "account 'nowhere' does not exist"),
        ("add qos x colour=red", "'colour' is not a known option"),
        ("add qos x priority=high", "priority='high': give a whole number"),
        ("add qos x GrpTRES=12", "give amounts such as"),
        ("ad qos x", "begin it with add, modify or remove"),
        ("delete user", "write a command"),
        ("add user $u account=root", "uses shell variables"),
        ("modify user set", "nothing is changed; write set"),
        ("modify user where name=root", "nothing is changed; write set"),
        ("modify user where colour=red set qos=x", "'colour' is not a known condition"),
        ("modify qos y set priority=1", "the qos 'y' does not exist"),
        ("delete account root", "the account root cannot be removed; drop this command"),
        ("add qos", "write a command"),
        ("add user 'ann account=a", "close the quote"),
        ("a|b|c", "no header"),
        ("Account|User|Share\na|b|c|d", ":2: has 4 fields"),
        ("add qos x preempt=y", "preempts 'y'"),
        ("Parent - 'x'", "account 'x' does not exist"),
    ],
)
def test_mistakes_are_one_line(tmp_path, line, complaint):
    with pytest.raises(SlurmError) as caught:
        accounts_of(tmp_path, line)
    assert complaint in str(caught.value)
    assert "\n" not in str(caught.value)


def script(tmp_path, *lines):
    """The accounts of a script: ann in phys, ben in chem, and what more it says."""
    head = "add qos gold", "add account phys,chem"
    users = "add user ann account=phys", "add user ben account=chem"
    return accounts_of(tmp_path, "\n".join((*head, *users, *lines)))


@pytest.mark.parametrize(
    ("line", "may"),
    [
        ("modify user set qoslevel=normal,gold", ("ann", "ben")),
        ("modify user where cluster=demo set qos=normal,gold", ("ann", "ben")),
        ("modify user where account=phys set qos+=gold", ("ann",)),
        ("modify user set qos=gold where name=ben", ("ben",)),
        ("modify user names=ann,ben account=chem set qos=gold", ("ben",)),
        (
            "sudo -u slurm /usr/bin/sacctmgr -i modify user ben set qos=gold >/dev/null 2>&1",
            ("ben",),
        ),
        ("yes | sacctmgr mod user ann set qos=gold && sacctmgr show qos", ("ann",)),
        ("sacctmgr -i modify user \\\n  ben set \\\n  qos=gold", ("ben",)),
        ("sacctmgr -Q modify user ann set qos=gold; scontrol reconfigure", ("ann",)),
        ("list associations format=Account tree withd\nsacctmgr show qos -P", ()),
        ("modify user set qos=gold\nremove qos where name=gold", ()),
    ],
)
def test_whom_lines_of_scripts_mean(tmp_path, line, may):
    found = script(tmp_path, line)
    assert tuple(one.user for one in found.associations if "gold" in one.qos) == may


def test_what_is_removed_is_not_there_from_then_on(tmp_path):
    found = script(
        tmp_path,
        "add account optics parent=phys\nadd user cy account=optics",
        "add qos top preempt=gold\nremove QOS where Name=gold",
        "delete user name=ben\ndelete account phys\nremove user nobody",
    )
    assert set(found.qos) == {"normal", "top"}
    assert found.qos["top"].preempt == frozenset()
    assert [(one.account, one.user) for one in found.associations][2:] == [("chem", None)]
    (remark,) = found.remarks
    assert remark.text.endswith(
        ":11: remove user: nothing matches the conditions, and nothing changes"
    )


def test_a_qos_that_no_line_adds_is_told_once(tmp_path):
    lines = ["add account a", "add user u account=a", "add user v account=a qos=normal,fast"]
    found = accounts_of(tmp_path, "\n".join([*lines, "modify user u set qos=fast defaultqos=fast"]))
    assert [one.text for one in found.remarks] == ["no line adds QOS 'fast': it has no limits"]
    assert accounts_of(tmp_path, "\n".join(["add qos fast", *lines])).remarks == ()


def test_what_means_nothing_here_is_told(tmp_path):
    found = script(
        tmp_path,
        "sacctmgr -i add wckey w",
        "set -e",
        "sacctmgr add coordinator account=phys names=ann",
        "sacctmgr load file=x",
    )
    said = [(one.line, one.text.split(": ", 1)[1]) for one in found.remarks]
    assert said == [
        (5, "'add wckey w': a wckey has no effect here"),
        (6, "'set' is not a call of sacctmgr"),
        (7, "'add coordinator account=phys names=ann': a coordinator has no effect here"),
        (8, "'load file=x' has no effect here"),
    ]


def test_variables_of_a_script_have_their_values(tmp_path):
    found = script(
        tmp_path,
        'SACCTMGR="/usr/bin/sacctmgr -i"  # no questions',
        "export SETS='fast,normal' ; # of all",
        "SM=$(which sacctmgr)",
        "$SACCTMGR add qos fast MaxWall=60",
        "${SM} -i modify user ann set qos=${SETS} || echo no ann",
    )
    ann = next(one for one in found.associations if one.user == "ann")
    assert (found.qos["fast"].limits.max_wall_min, ann.qos) == (60, ("fast", "normal"))
    assert [one.line for one in found.remarks] == [9]  # echo


def test_calls_with_variables_of_unknown_value_are_refused(tmp_path):
    with pytest.raises(SlurmError, match=r":6: '\$CALL add qos slow': uses shell variables"):
        script(tmp_path, "$HERE/sacctmgr add qos fast", "$CALL -i add qos slow", "$CALL reload")


LOOPS = """SM="sacctmgr -i"
USERS="ann bob"
declare -a MORE=(eve "fay")
$SM add account phys,bio,root2
for u in $USERS; do $SM add user $u account=phys; done
for u in "${MORE[@]}"
do
    echo "adding; $u"   # a comment; with a mark
    limit=3
    sacctmgr -i add user ${u} account=bio fairshare=2 \\
        maxjobs=$limit
done
for a in phys bio; do
  for k in $(seq 1 2); do
    sacctmgr -i add user $a$k account=$a
  done
  for k in `seq 8 9`; do sacctmgr -i add user $a$k account=$a; done
done
set -e; for n in g{08..10} {x,y}z 'w' w{3..1}; do sacctmgr -i add user "$n" account=bio; done; date
for n in $(seq -w 8 10) $(seq 2)
do sacctmgr -i add user s$n account=root2; done
sacctmgr -i modify user where name=s$n set fairshare=7
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_loops_of_a_script_do_what_bash_does(tmp_path):
    found = accounts_of(tmp_path, LOOPS)
    shell = 'sacctmgr() { echo sacctmgr "$@"; }\n' + LOOPS
    made = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, check=True)
    calls = [line for line in made.stdout.splitlines() if line.startswith("sacctmgr")]
    assert len(calls) == 1 + 2 + 2 + 8 + 9 + 5 + 1
    plain = accounts_of(tmp_path, "\n".join(calls))

    def bare(accounts):
        return [
            (one.account, one.user, one.shares, one.limits, one.qos)
            for one in accounts.associations
        ]

    assert bare(found) == bare(plain)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("u=ann\nfor u in $(cat users); do sacctmgr add user $u account=root; done", ":2: .*'"),
        ("for u in *.txt\ndo\nsacctmgr add user $u account=root\ndone", ":3: .*shell variables"),
        (
            "for u in a b; do\n[ $u = a ] && continue\nsacctmgr add user $u account=root\ndone",
            ":3:",
        ),
        ("for u in a b; do\nsacctmgr add user $u account=root\n", ":2: .*uses shell variables"),
        ("for u in {1..10001}; do sacctmgr add user $u account=root; done", "than 10,000 turns"),
        (
            "for u in {1..200}; do for v in {1..200}; do sacctmgr add user $u$v; done; done",
            "than 10,000 turns",
        ),
        ("for u in a b; do sacctmgr add user $u acount=root; done", ":1: .*give|has no account"),
    ],
)
def test_loops_that_cannot_be_unrolled_are_refused(tmp_path, text, says):
    with pytest.raises(SlurmError, match=says):
        accounts_of(tmp_path, text)


def test_all_lines_that_are_refused_are_named(tmp_path):
    lines = "ad qos x", "add user cy account=phys colour=red", "modify user cy set maxjobs=many"
    with pytest.raises(SlurmError) as caught:
        script(tmp_path, *lines)
    head, *told = str(caught.value).split("\n")
    assert head.endswith("sacctmgr.txt: 3 problems:")
    assert [line.split(": ")[0] for line in told] == ["  line 5", "  line 6", "  line 7"]


WORDS = """add user qos x account= root = , | ' : User - Account|User|Share|GrpTRES Name|Priority
Parent 'root' GrpTRES=cpu= -1"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\n"])


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES | st.text(max_size=3), max_size=20).map("".join))
def test_whatever_is_in_a_file_is_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "fuzzed.txt"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(SlurmError):
        read_accounts(path)


def test_names_are_added_and_taken_away(tmp_path):
    found = accounts_of(
        tmp_path,
        """add qos fast preempt=normal
        modify qos fast set preempt+=slow,slower
        modify qos fast set preempt-=normal
        add qos slow
        add qos slower
        add account a qos=normal
        add user ann account=a qos=normal,fast
        modify user ann where account=a set qos+=slow qos-=normal
        """,
    )
    assert found.qos["fast"].preempt == {"slow", "slower"}
    assert named(found)["a", "ann"].qos == ("fast", "slow")


def test_the_script_of_the_accounts_of_jobs_makes_them(tmp_path):
    jobs = [
        JobRequest("1", 0, DelayWork(1), user="ann", account="physics", qos="gold"),
        JobRequest("2", 0, DelayWork(1), user="ann", account="bio"),
        JobRequest("3", 0, DelayWork(1), user="bob"),
        JobRequest("4", 0, DelayWork(1)),
    ]
    made = accounts_of_jobs(jobs)
    (tmp_path / "accounts.txt").write_text(commands_of(made))
    read = read_accounts(tmp_path / "accounts.txt")
    assert read.qos.keys() == made.qos.keys()
    facts = [
        {(one.account, one.user, one.qos, one.default) for one in each.associations if one.user}
        for each in (made, read)
    ]
    assert facts[0] == facts[1]
    assert {one.account for one in read.associations} == {"root", "physics", "bio", "users"}


@pytest.mark.parametrize("more", ["'normal' stray", "'normal", "normal'", "'normal' 'long'"])
@pytest.mark.parametrize("line", ["Cluster - 'c'", "Account - 'a'"])
def test_text_beside_the_quotes_of_a_dump_is_refused(tmp_path, line, more):
    path = tmp_path / "dump.txt"
    path.write_text(f"{line}:Description='it's':QOS={more}:Fairshare=3\n")
    with pytest.raises(SlurmError, match=r"dump.txt:1: .*text beside its quotes"):
        read_accounts(path)


def test_changes_of_qos_lists_are_those_of_the_account_above(tmp_path):
    """`sacctmgr dump` prints QOS='+long' for what is allowed beside that from above."""
    found = accounts_of(
        tmp_path,
        """Cluster - 'c':QOS='normal,high'
        Parent - 'root'
        Account - 'phys':QOS='+long'
        Account - 'bio':QOS='-high,+long'
        Account - 'chem':QOS='low'
        Parent - 'phys'
        User - 'ann':DefaultAccount='phys':QOS='-high'
        User - 'bob':DefaultAccount='phys'
        Parent - 'chem'
        User - 'cy':DefaultAccount='chem':QOS='+high'
        """,
    )
    by_name = named(found)
    assert by_name["phys", None].qos == ("normal", "high", "long")
    assert by_name["bio", None].qos == ("normal", "long")
    assert by_name["phys", "ann"].qos == ("normal", "long")
    assert by_name["phys", "bob"].qos == ()  # those of phys
    assert by_name["chem", "cy"].qos == ("low", "high")
