"""One file per kind of task, each with a `KIND`."""
