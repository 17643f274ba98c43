"""Where strangers' code runs: scorers, and what models wrote. No network, nothing of the host to be seen, and all of it gone at its limits.

box      one command in one sandbox: what goes in, the limits, how it ended
seccomp  the system calls that nothing in it needs
cgroup   a control group of its own, where one was delegated
watcher  memory and processes of the whole tree, where no control group can be had
kit/     the files that go in: the contract of a scorer, and what drives it
"""
